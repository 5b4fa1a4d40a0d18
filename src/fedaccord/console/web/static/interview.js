// The interview: the answers so far are in the address, so that reloading and going back keep them.
"use strict";

function keepAnswers() {
  const form = document.getElementById("interview");
  const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  history.replaceState(null, "", `${window.location.pathname}?${given}`);
}

document.addEventListener("input", keepAnswers);
document.addEventListener("DOMContentLoaded", keepAnswers);
