// Ops by dtypes: the worst verdict and the number of cases of each device in each cell.
"use strict";
const matrix = (() => {
  const { data, el, table } = page;
  const holder = el("div");
  // A cell has the colour of the first of these that one of its cases has: crash, timeout, fail, waived, pass,
  // unsupported, not applicable. So a kernel that lacks one case of twenty is no cell without a kernel.
  const FIRST = [2, 3, 1, 6, 0, 4, 5];
  const UNSUPPORTED = 4, NOT_APPLICABLE = 5;
  const rank = FIRST.reduce((r, v, k) => { r[v] = k; return r; }, []);

  // {op: {dtype: [{verdict, cases, judged, passing, failing, ulp} or null for each device]}}
  function cells({ shown, found }) {
    const rows = new Map();
    for (const i of found) {
      const op = cases.op(i), dtype = cases.column[cases.typeIndex(i)];
      if (!rows.has(op)) rows.set(op, { op, cells: {}, failing: 0, cases: 0, runs: false, lacks: false });
      const row = rows.get(op);
      const cell = (row.cells[dtype] ??= shown.map(() => null));
      shown.forEach((run, k) => {
        const v = cases.verdict(run, i);
        if (v === null) return;
        const own = (cell[k] ??= { verdict: v, cases: 0, judged: 0, passing: 0, failing: 0, ulp: null });
        const bad = v >= 1 && v <= 3;
        own.cases += 1; row.cases += 1;
        own.judged += v !== NOT_APPLICABLE;
        row.runs ||= cases.ranOp(run, i);
        row.lacks ||= v === UNSUPPORTED;
        own.failing += bad; row.failing += bad;
        own.passing += v === 0;
        if (rank[v] < rank[own.verdict]) own.verdict = v;
        if (run.ulp[i] !== null && run.ulp[i] > (own.ulp ?? -1)) own.ulp = run.ulp[i];
      });
    }
    return [...rows.values()];
  }

  const content = (c) => {
    if (c.failing) return `\u2717 ${c.failing}`;
    if (!c.passing) return cases.MARKS[c.verdict];
    return c.passing === c.judged ? String(c.passing) : `${c.passing}/${c.judged}`;
  };
  function button(row, dtype, shown, choose) {
    const cell = row.cells[dtype];
    if (!cell) return "";
    const lines = cell.map((c, k) => c && `${shown[k].name}: ${c.passing} of ${c.judged} cases pass`
      + (c.failing ? `, ${c.failing} failing` : "") + (c.ulp === null ? "" : `, worst error ${cases.number(c.ulp)} ULP`));
    const label = `${row.op} ${dtype}\n${lines.filter(Boolean).join("\n")}`;
    return el("button", { type: "button", class: "cell", "data-tip": label, "aria-label": label, onclick: () => choose(row.op, dtype) },
      cell.map((c) => (c ? el("span", { class: `v v${c.verdict}` }, content(c))
        : el("span", { class: "v" }, "\u00b7"))));
  }

  // A column sorts by the verdicts of the devices, the worst first, and then by how many cases fail.
  const weight = (cell) => {
    const own = (cell || []).filter(Boolean);
    return own.length ? Math.max(...own.map((c) => (6 - rank[c.verdict]) * 1e6 + c.failing)) : null;
  };

  function draw({ shown, found }, choose) {
    const rows = cells({ shown, found });
    const present = cases.columns.filter((t) => rows.some((r) => r.cells[t]));
    const grid = table({
      caption: `${rows.filter((r) => r.runs).length} ops that ran, ${rows.filter((r) => r.lacks && !r.runs).length} without a kernel; `
        + `devices in each cell: ${shown.map((r) => r.name).join(", ")}`,
      tall: true, chunk: 80, className: "matrix", sort: [0, 1],
      columns: [
        { title: "Op", head: true, value: (r) => r.op },
        { title: "Cases", numeric: true, value: (r) => r.cases },
        { title: "Failing", numeric: true, value: (r) => r.failing || null },
        ...present.map((t) => ({ title: t, numeric: false, value: (r) => weight(r.cells[t]), show: (r) => button(r, t, shown, choose) })),
      ],
    });
    grid.update(rows);
    holder.replaceChildren(grid.node);
  }
  return { draw, node: holder };
})();
