// The table of members: cells pasted from a spreadsheet, and rows without asking the server.
"use strict";

const form = document.getElementById("members");
const body = form.querySelector(".members tbody");
const blank = document.getElementById("new-row");
let next = body.rows.length;

function addRow() {
  const row = blank.content.querySelector("tr").cloneNode(true);
  for (const input of row.querySelectorAll("input, button")) {
    input.name = input.name.replace("rN-", `r${next}-`);
    if (input.value === "remove-N") input.value = `remove-${next}`;
    const label = input.getAttribute("aria-label");
    if (label) input.setAttribute("aria-label", label + (body.rows.length + 1));
  }
  next += 1;
  body.append(row);
  return row;
}

form.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-row]");
  if (!button) return;
  event.preventDefault();
  if (button.dataset.row === "add") {
    addRow().querySelector("input").focus();
    return;
  }
  const row = button.closest("tr");
  const beside = row.nextElementSibling || row.previousElementSibling;
  row.remove();
  (beside || addRow()).querySelector("input").focus();
});

// The cells of copied text: tabs between them, lines between rows, quotes around either in a cell.
// A quote that does not end with its cell is a part of it.
function cellsOf(text) {
  const rows = [];
  const cell = /(?:"((?:[^"]|"")*)"(?=[\t\r\n]|$)|([^\t\r\n]*))(\t|\r?\n|$)/gy;
  let row = [];
  for (let found = cell.exec(text); found; found = cell.exec(text)) {
    const [all, quoted, plain, end] = found;
    row.push((quoted === undefined ? plain : quoted.replaceAll('""', '"')).replace(/\s+/g, " ").trim());
    if (end !== "\t") {
      rows.push(row);
      row = [];
    }
    if (!all || cell.lastIndex >= text.length) break;
  }
  if (row.length) rows.push(row);
  while (rows.length && rows[rows.length - 1].every((each) => !each)) rows.pop();
  return rows;
}

function seen(row) {
  return [...row.querySelectorAll("td:not(.act) input")].filter((input) => input.offsetParent !== null);
}

form.addEventListener("paste", (event) => {
  const cell = event.target.closest(".members input");
  const text = event.clipboardData?.getData("text/plain") || "";
  if (!cell || !/[\t\n]/.test(text.replace(/\s+$/, ""))) return;
  event.preventDefault();
  const rows = cellsOf(text);
  if (rows.length > 1 && rows[0].length > 1 && !/\d/.test(rows[0].join(""))) {
    // The first row names the columns: the server knows what they may be called.
    form.elements.text.value = text;
    form.requestSubmit(form.querySelector("button[value=paste]"));
    return;
  }
  const from = seen(cell.closest("tr")).indexOf(cell);
  let row = cell.closest("tr");
  let last = cell;
  rows.forEach((cells, k) => {
    if (k) row = row.nextElementSibling || addRow();
    const inputs = seen(row);
    cells.forEach((value, j) => {
      const input = inputs[from + j];
      if (!input) return;
      input.value = value;
      last = input;
    });
  });
  last.focus();
});

// What was typed is not lost by going elsewhere: links to other pages about this consortium save it
// first, and the browser asks before anything else.
let leaving = false;
const before = typed();

function typed() {
  const fields = new FormData(form);
  fields.delete("more");
  return JSON.stringify([...fields].filter(([, value]) => value));
}

function isUnsaved() {
  return "unsaved" in form.dataset || typed() !== before;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const place = window.location.pathname.replace(/[^/]*$/, "");
  if (!link || !link.pathname.startsWith(place) || link.hash) return;
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || !isUnsaved()) return;
  event.preventDefault();
  const button = document.createElement("button");
  button.name = "action";
  button.value = link.pathname.slice(place.length);
  button.hidden = true;
  form.append(button);
  form.requestSubmit(button);
  button.remove();
});

form.addEventListener("submit", () => { leaving = true; });
form.addEventListener("input", () => { leaving = false; });
window.addEventListener("beforeunload", (event) => {
  if (!leaving && isUnsaved()) event.preventDefault();
});
