// What every page of the console does beyond htmx. Nothing here is needed to use a page.
"use strict";

document.documentElement.classList.add("js");

// <div data-stream="/address">: htmx sends the event "changed" to it when the server tells so.
function follow(element) {
  if (element.dataset.followed) return;
  element.dataset.followed = "yes";
  const stream = new EventSource(element.dataset.stream);
  stream.addEventListener("changed", () => {
    if (!element.isConnected) { stream.close(); return; }
    htmx.trigger(element, "changed");
  });
  stream.addEventListener("ended", () => stream.close());
  // the session has ended: the page loads itself again, and says so
  stream.addEventListener("out", () => { stream.close(); window.location.reload(); });
}

// <input type="number" data-slider="step">: a slider, which shows its value below.
function slide(input) {
  input.step = input.dataset.slider;
  input.type = "range";
}

// <output data-of="id">: what the slider with this id stands at, while it moves.
function show(slider) {
  for (const output of document.querySelectorAll(`output[data-of="${slider.id}"]`)) {
    const scale = Number(slider.dataset.times || 1);
    const value = Number(slider.value) * scale;
    output.textContent = value.toLocaleString("en", { maximumSignificantDigits: 6 }) + (slider.dataset.unit || "");
  }
}

function prepare(root) {
  root.querySelectorAll("[data-stream]").forEach(follow);
  root.querySelectorAll("input[type=number][data-slider]").forEach(slide);
  root.querySelectorAll("input[type=range]").forEach(show);
}

document.addEventListener("DOMContentLoaded", () => prepare(document));
document.addEventListener("htmx:after:swap", () => prepare(document));
document.addEventListener("input", (event) => {
  if (event.target.matches("input[type=range]")) show(event.target);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.action === "print") window.print();
  if (button.dataset.action === "copy") {
    const from = document.getElementById(button.dataset.from);
    navigator.clipboard.writeText(from ? from.value || from.textContent.trim() : window.location.href)
      .then(() => { button.textContent = "Copied"; });
  }
});

document.addEventListener("submit", (event) => {
  const asked = event.submitter?.dataset.confirm || event.target.dataset.confirm;
  if (asked && !window.confirm(asked)) event.preventDefault();
});

// <form data-code>: a code after # in the address is never sent with it; it is filled in and sent.
function enterCode() {
  const form = document.querySelector("form[data-code]");
  const code = window.location.hash.slice(1);
  if (!form || !code) return;
  form.elements.code.value = code;
  history.replaceState(null, "", window.location.pathname);
  form.requestSubmit();
}

document.addEventListener("DOMContentLoaded", enterCode);

// A new link that is opened in a tab of the same page changes only what is after #, and browsers
// load nothing then. [data-refused]: the page answered a form, which must not be sent again.
window.addEventListener("hashchange", () => {
  const { hash, pathname } = window.location;
  if (hash.length < 2 || document.getElementById(hash.slice(1))) return;
  if (document.querySelector("form[data-code]")) enterCode();
  else if (document.querySelector("[data-refused]")) window.location.assign(`${pathname}?again${hash}`);
  else window.location.reload();
});
