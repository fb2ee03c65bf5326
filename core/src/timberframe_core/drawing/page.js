// What all pages share: elements, tables that sort and grow as they are scrolled, hints, and the switch of the theme.
"use strict";
const page = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const text = document.getElementById("data").textContent;
  const data = JSON.parse(text);

  const fill = (node, attributes, children) => {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === false || value === null || value === undefined) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat().filter((c) => c !== null && c !== undefined));
    return node;
  };
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  // Three significant digits, as 1.23e-5 where that is shorter.
  const number = (x) => {
    if (x === null || x === undefined) return "";
    const size = Math.abs(x);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return x.toExponential(2);
    return Number.isInteger(x) ? x.toLocaleString("en") : String(Number(x.toPrecision(3)));
  };
  const seconds = (s) => {
    for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"]]) if (s >= unit) return `${number(s / unit)} ${name}`;
    return `${number(s * 1e9)} ns`;
  };
  const bytes = (n) => {
    for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) if (n >= unit) return `${number(n / unit)} ${name}`;
    return `${n} bytes`;
  };

  // Orders of values: numbers by size, the rest as text; what is absent comes last either way.
  const compare = (a, b, direction) => {
    const none = (x) => x === null || x === undefined || x === "";
    if (none(a) || none(b)) return none(a) - none(b);
    return direction * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en"));
  };

  // A table of rows. columns: {title, value(row), show(row) -> node or text, numeric, head (a heading of the row), hint};
  // those without a value do not sort. Rows are made `chunk` at a time, as the end of the table comes into view.
  function table({ caption, columns, chunk = 60, sort = null, tall = false, empty = "Nothing matches.", className = "" }) {
    let rows = [], shown = 0, order = sort;
    const body = el("tbody");
    const heads = columns.map((c, i) => {
      const label = c.value ? el("button", { type: "button", class: "sort", onclick: () => reorder(i) }, c.title) : c.title;
      return el("th", { scope: "col", class: c.numeric ? "number" : null, title: c.hint }, label);
    });
    const inner = el("table", { class: className || null }, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), body);
    const more = el("button", { type: "button", onclick: () => grow() });
    const note = el("p", { class: "muted", hidden: true }, empty);
    const frame = el("div", { class: tall ? "scroll tall" : "scroll", tabindex: "0", role: "region", "aria-label": caption }, inner, more);
    const node = el("div", {}, frame, note);
    const row = (r) => el("tr", {}, columns.map((c) => {
      const what = c.show ? c.show(r) : c.value(r);
      const content = typeof what === "number" ? number(what) : what;
      return el(c.head ? "th" : "td", { scope: c.head ? "row" : null, class: c.numeric ? "number" : null }, content);
    }));
    function grow() {
      body.append(...rows.slice(shown, shown + chunk).map(row));
      shown = Math.min(shown + chunk, rows.length);
      more.hidden = shown >= rows.length;
      more.textContent = `Show more (${(rows.length - shown).toLocaleString("en")} left)`;
    }
    function draw() {
      heads.forEach((h, i) => {
        if (!columns[i].value) return;
        const own = order && order[0] === i;
        h.setAttribute("aria-sort", own ? (order[1] > 0 ? "ascending" : "descending") : "none");
      });
      if (order) {
        const value = columns[order[0]].value;
        rows = [...rows].sort((a, b) => compare(value(a), value(b), order[1]));
      }
      body.replaceChildren();
      shown = 0;
      note.hidden = rows.length > 0;
      frame.hidden = rows.length === 0;
      grow();
    }
    function reorder(i) {
      order = [i, order && order[0] === i ? -order[1] : columns[i].numeric ? -1 : 1];
      draw();
    }
    new IntersectionObserver((seen) => {
      if (seen.some((s) => s.isIntersecting) && !more.hidden && shown) grow();
    }, { rootMargin: "200px" }).observe(more);
    return { node, update: (next) => { rows = next; draw(); } };
  }

  // Elements with data-tip show it under the pointer and at the focus.
  const tip = el("div", { id: "tip", role: "status" });
  document.body.append(tip);
  const hint = (event) => {
    const owner = event.target.closest && event.target.closest("[data-tip]");
    tip.style.display = owner ? "block" : "none";
    if (!owner) return;
    tip.textContent = owner.dataset.tip;
    const box = owner.getBoundingClientRect();
    const [x, y] = event.clientX ? [event.clientX, event.clientY] : [box.left, box.bottom];
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
  };
  for (const kind of ["mousemove", "focusin"]) document.addEventListener(kind, hint);

  const button = document.getElementById("theme");
  const dark = () => document.documentElement.dataset.theme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();

  return { data, el, svg, number, seconds, bytes, table };
})();
