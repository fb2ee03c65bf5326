// A field above each table of more than 100 rows, which leaves the rows whose first cell has the text.
"use strict";

const LONG = 100;

function addFilter(table) {
  const rows = Array.from(table.tBodies[0].rows);
  const names = rows.map((row) => row.cells[0].textContent.toLowerCase());
  const field = document.createElement("input");
  field.type = "search";
  field.className = "filter";
  field.placeholder = `Filter ${rows.length} rows by name, such as ${rows[0].cells[0].textContent.trim()}`;
  field.setAttribute("aria-label", "Filter the rows of the table by name");
  const apply = () => {
    const wanted = field.value.trim().toLowerCase();
    rows.forEach((row, i) => { row.hidden = !names[i].includes(wanted); });
  };
  field.addEventListener("input", apply);
  const above = table.closest(".table-wrapper") || table;
  above.parentNode.insertBefore(field, above);
  field.value = new URLSearchParams(location.search).get("filter") || "";
  apply();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    if (table.tBodies.length && table.tBodies[0].rows.length > LONG) addFilter(table);
  }
});
