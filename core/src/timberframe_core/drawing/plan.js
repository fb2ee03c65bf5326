// The page of a plan: hints at once and at the focus in place of titles, and a search in the tables.
"use strict";
(() => {
  for (const title of document.querySelectorAll("svg.tf-plan title")) {
    const owner = title.parentNode;
    owner.dataset.tip = title.textContent;
    owner.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const rows = [...document.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  document.getElementById("search").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const [row, text] of rows) row.hidden = !words.every((w) => text.includes(w));
  });
})();
