"""The page's one script: it lets readers sort a table. Without it the page is complete."""

# Headings become buttons here and not in the HTML, so that a reader without scripts finds none
# that do nothing. Numbers are sorted from the largest, names from the first; what is missing
# stays last.
SORT_TABLES = r"""
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const names = new Intl.Collator(undefined, { numeric: true });
  const numeric = /^[+-]?[\d.,]+(e[+-]?\d+)?(%| |$)/;
  const missing = (text) => text === "\u2013" || text === "undefined" || text === "";
  const sort = (column, ascending) => {
    const lines = Array.from(body.rows, (row) => ({ row, text: row.cells[column].textContent }));
    const known = lines.filter((line) => !missing(line.text));
    const last = lines.filter((line) => missing(line.text));
    if (column > 0 && known.every((line) => numeric.test(line.text))) {
      for (const line of known) line.number = parseFloat(line.text.replace(/,/g, ""));
      known.sort((a, b) => (ascending ? a.number - b.number : b.number - a.number));
    } else {
      known.sort((a, b) => (ascending ? 1 : -1) * names.compare(a.text, b.text));
    }
    body.append(...known.concat(last).map((line) => line.row));
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const ascending = before ? before === "descending" : column === 0;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sort(column, ascending);
    });
  });
}
"""
