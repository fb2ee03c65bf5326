// Charts as SVG: points in rows, points on two logarithmic axes, lines. Each series has a colour and a shape of its own.
"use strict";
const charts = (() => {
  const { el, svg, number } = page;
  const colour = (k) => `var(--c${k % 7})`;
  const SHAPES = [
    "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z", "M-4.5-4.5H4.5V4.5H-4.5Z", "M0-6L6 5H-6Z", "M0-6.5L5.5 0L0 6.5L-5.5 0Z",
    "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z", "M0 6L6-5H-6Z", "M-6-2L0-6L6-2L4 5H-4Z",
  ];
  const mark = (k, x, y, tip) => svg("path", {
    d: SHAPES[k % 7], fill: colour(k), stroke: "var(--surface)", "stroke-width": 1, transform: `translate(${x},${y})`,
    "data-tip": tip, tabindex: tip ? "0" : null, role: tip ? "img" : null, "aria-label": tip,
  });
  const text = (x, y, content, attributes) => svg("text", { x, y, ...attributes }, content);
  const legend = (names) => el("ul", { class: "series" }, names.map((name, k) => el("li", {},
    svg("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, mark(k, 0, 0)), name)));

  // Where a value lies: linear from zero, or logarithmic between the powers of ten (or of two) around the values.
  function scale(values, from, to, log) {
    const finite = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
    let low = log ? Math.min(...finite) : 0, high = Math.max(...finite, log ? low : 1e-300);
    if (!log) {
      const step = 10 ** Math.floor(Math.log10(high || 1)), most = Math.ceil((high || 1) / step - 1e-9) * step;
      const ticks = [0, .25, .5, .75, 1].map((t) => t * most);
      return { at: (v) => from + (to - from) * v / most, ticks };
    }
    const base = high / low > 40 ? 10 : 2, logb = (v) => Math.log(v) / Math.log(base);
    const a = Math.floor(logb(low) + 1e-9);
    let b = Math.ceil(logb(high) - 1e-9);
    if (a === b) b += 1;
    const every = Math.ceil((b - a) / 8), ticks = [];
    for (let k = a; k <= b; k += every) ticks.push(base ** k);
    return { at: (v) => from + (to - from) * (Math.max(a, Math.min(b, logb(v))) - a) / (b - a), ticks, low: base ** a, high: base ** b };
  }
  const figure = (title, width, height, names, content, note) => el("figure", { class: "chart" },
    el("h3", {}, title), names.length ? legend(names) : null,
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title }, content),
    note ? el("figcaption", {}, note) : null);

  // One row for each name, points along a logarithmic axis; `line` is a value to be compared with.
  function dots({ title, unit, series, rows, line = null, percent = false, note = "" }) {
    const most = 38, label = (name) => (name.length > most ? `${name.slice(0, most - 1)}\u2026` : name);
    const width = 760, left = 24 + 7.2 * Math.max(...rows.map((r) => label(r.name).length));
    const step = Math.max(21, 6 * series.length + 6), top = 24, height = rows.length * step + top + 42;
    const show = (v) => (percent ? `${number(100 * v)}%` : number(v));
    const floor = 1e-6;
    const values = rows.flatMap((r) => r.points.map((p) => Math.max(p.x, floor)));
    const log = !percent || Math.max(...values) > 2; // shares of a limit are linear unless one is far beyond it
    const x = scale(line ? [...values, line] : values, left, width - 30, log);
    const content = x.ticks.map((t) => [
      svg("line", { class: "grid", x1: x.at(t), x2: x.at(t), y1: top, y2: height - 38 }),
      ...[14, height - 22].map((y) => text(x.at(t), y, show(t), { "text-anchor": "middle", class: "muted" })),
    ]);
    if (line) content.push(svg("line", { class: "axis", x1: x.at(line), x2: x.at(line), y1: top, y2: height - 38, "stroke-width": 2, "stroke-dasharray": "5 3" }));
    rows.forEach((row, k) => {
      const y = k * step + top + step / 2;
      const apart = (n) => (n - (series.length - 1) / 2) * Math.min(6, 15 / series.length);
      content.push(text(left - 10, y + 4, label(row.name), { "text-anchor": "end" }), svg("line", { class: "grid", x1: left, x2: width - 30, y1: y, y2: y, "stroke-dasharray": "1 4" }));
      for (const p of row.points) content.push(mark(p.series, x.at(Math.max(p.x, floor)), y + apart(p.series), p.tip));
    });
    content.push(text((left + width) / 2, height - 5, unit, { "text-anchor": "middle", class: "muted" }));
    return figure(title, width, height, series, content.flat(), note);
  }

  // Axes of a plane with ticks, and what draws into it.
  function plane({ title, series, xs, ys, xUnit, yUnit, xLog, yLog, xShow = number, yShow = number, note = "", draw, ticks = null }) {
    const width = 720, height = 380, left = 70, bottom = height - 48;
    const x = scale(xs, left, width - 20, xLog), y = scale(ys, bottom, 14, yLog);
    if (ticks) x.ticks = ticks;
    const content = [
      ...x.ticks.flatMap((t) => [svg("line", { class: "grid", x1: x.at(t), x2: x.at(t), y1: 14, y2: bottom }),
        text(x.at(t), bottom + 17, xShow(t), { "text-anchor": "middle", class: "muted" })]),
      ...y.ticks.flatMap((t) => [svg("line", { class: "grid", x1: left, x2: width - 20, y1: y.at(t), y2: y.at(t) }),
        text(left - 8, y.at(t) + 4, yShow(t), { "text-anchor": "end", class: "muted" })]),
      text((left + width) / 2, height - 8, xUnit, { "text-anchor": "middle", class: "muted" }),
      text(-bottom / 2, 14, yUnit, { "text-anchor": "middle", class: "muted", transform: "rotate(-90)" }),
      ...draw(x, y),
    ];
    return figure(title, width, height, series, content, note);
  }

  // Points (x, y) of each series, joined from left to right.
  const lines = ({ series, rows, ...rest }) => plane({
    ...rest, series, xs: rows.flat().map((p) => p.x), ys: [...rows.flat().map((p) => p.y), ...(rest.also || [])],
    draw: (x, y) => [
      ...(rest.under ? rest.under(x, y) : []),
      ...rows.flatMap((points, k) => [
        svg("polyline", { points: points.map((p) => `${x.at(p.x)},${y.at(p.y)}`).join(" "), fill: "none", stroke: colour(k), "stroke-width": 2 }),
        ...points.map((p) => mark(k, x.at(p.x), y.at(p.y), p.tip))]),
    ],
  });
  return { dots, lines, plane, mark, colour, text };
})();
