// The page about an agreement: what is set is in the address, and the back button undoes it.
"use strict";

let changed = 0;

document.addEventListener("htmx:after:swap", () => {
  const state = document.getElementById("state");
  const address = state && state.dataset.address;
  if (!address || address === window.location.pathname + window.location.search) return;
  // while a slider moves there is one entry, not fifty
  const now = Date.now();
  if (now - changed > 800) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  changed = now;
});

window.addEventListener("popstate", () => window.location.reload());

document.addEventListener("input", (event) => {
  const choice = document.getElementById(event.target.dataset.ticks || "");
  if (choice) choice.checked = true;
}, true);
