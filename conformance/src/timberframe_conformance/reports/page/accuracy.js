// The worst error of each op, dtype and device: a chart of those nearest to their limits, and a table of all. Results
// that are rounded correctly, up to half a ULP from the truth, are in the table alone: they would fill the chart with 100%
// wherever correct rounding is the limit, as in most ops of bfloat16.
"use strict";
const accuracy = (() => {
  const { el, number, table } = page;
  const SHOWN = 40, ROUNDED = 0.501;
  const chart = el("div"), label = el("p", { class: "muted" });
  const list = table({
    caption: "Worst errors", tall: true, sort: [5, -1],
    columns: [
      { title: "Op", head: true, value: (r) => r.op },
      { title: "Dtypes", value: (r) => r.types },
      { title: "Device", value: (r) => r.run.name },
      { title: "Error (ULP)", numeric: true, value: (r) => r.ulp },
      { title: "Limit (ULP)", numeric: true, value: (r) => r.limit },
      { title: "Of the limit", numeric: true, value: (r) => r.share, show: (r) => `${number(100 * r.share)}%` },
      { title: "Case", value: (r) => cases.id(r.i), show: (r) => el("code", {}, cases.id(r.i)) },
    ],
  });

  function worst({ shown, found }) {
    const best = new Map();
    shown.forEach((run, k) => {
      for (const i of found) {
        const ulp = run.ulp[i], limit = run.limit[i];
        if (ulp === null || !limit) continue;
        const key = `${k}/${cases.opIndex(i)}/${cases.typeIndex(i)}`;
        const share = ulp / limit;
        if (!(best.get(key)?.share >= share)) best.set(key, { run, k, i, ulp, limit, share, op: cases.op(i), types: cases.type(i) });
      }
    });
    return [...best.values()];
  }

  function draw(selection) {
    const rows = worst(selection);
    const labels = new Map();
    for (const r of rows.filter((r) => r.ulp > ROUNDED).sort((a, b) => b.share - a.share)) {
      const name = `${r.op} ${r.types}`;
      if (!labels.has(name)) {
        if (labels.size === SHOWN) continue;
        labels.set(name, []);
      }
      labels.get(name).push(r);
    }
    label.textContent = !rows.length ? "" : labels.size
      ? `The ${labels.size} ops and dtypes of the selection whose errors are nearest to their limits, as shares of the limits; `
        + "without those whose results are all rounded correctly."
      : "All results of the selection are rounded correctly: none is more than half a ULP from the truth.";
    const series = page.data.runs.map((r) => r.name);
    chart.replaceChildren(...(labels.size ? [charts.dots({
      title: "Worst error as a share of its limit", unit: "of the limit", series, line: 1, percent: true,
      rows: [...labels].map(([name, own]) => ({ name, points: own.map((r) => ({
        series: series.indexOf(r.run.name), x: r.share,
        tip: `${r.op} ${r.types} on ${r.run.name}\n${number(r.ulp)} ULP of at most ${number(r.limit)}`,
      })) })),
    })] : []));
    list.update(rows);
  }
  return { draw, node: el("div", {}, label, chart, list.node) };
})();
