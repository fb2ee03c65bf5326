// Ops by dtypes: the worst verdict and the number of cases of each device in each cell.
"use strict";
const matrix = (() => {
  const { data, el, table } = page;
  const holder = el("div");
  // What a cell is coloured by: crash, timeout, fail, waived, pass, and only where nothing ran, unsupported and not applicable.
  const WORSE = [2, 3, 1, 6, 0, 4, 5];
  const rank = WORSE.reduce((r, v, k) => { r[v] = k; return r; }, []);

  // {op: {dtype: [{verdict, cases, failing, ulp} or null for each device]}}
  function cells({ shown, found }) {
    const rows = new Map();
    for (const i of found) {
      const op = cases.op(i), dtype = cases.column[cases.typeIndex(i)];
      if (!rows.has(op)) rows.set(op, { op, cells: {}, failing: 0, cases: 0 });
      const row = rows.get(op);
      const cell = (row.cells[dtype] ??= shown.map(() => null));
      shown.forEach((run, k) => {
        const v = cases.verdict(run, i);
        if (v === null) return;
        const own = (cell[k] ??= { verdict: v, cases: 0, passing: 0, failing: 0, declined: 0, ulp: null });
        const bad = v >= 1 && v <= 3;
        own.cases += 1; row.cases += 1;
        own.failing += bad; row.failing += bad;
        own.passing += v === 0;
        own.declined += v === 4;
        if (rank[v] < rank[own.verdict]) own.verdict = v;
        if (run.ulp[i] !== null && run.ulp[i] > (own.ulp ?? -1)) own.ulp = run.ulp[i];
      });
    }
    return [...rows.values()];
  }

  const content = (c) => {
    if (c.failing) return `\u2717 ${c.failing}`;
    if (c.verdict === 0 && !c.declined) return String(c.passing);
    return c.passing ? `${c.passing}/${c.cases}` : cases.MARKS[c.verdict];
  };
  function button(row, dtype, shown, choose) {
    const cell = row.cells[dtype];
    if (!cell) return "";
    const lines = cell.map((c, k) => c && `${shown[k].name}: ${data.verdicts[c.verdict]}, ${c.cases} cases`
      + (c.failing ? `, ${c.failing} failing` : "") + (c.ulp === null ? "" : `, worst error ${cases.number(c.ulp)} ULP`));
    const label = `${row.op} ${dtype}\n${lines.filter(Boolean).join("\n")}`;
    return el("button", { type: "button", class: "cell", "data-tip": label, "aria-label": label, onclick: () => choose(row.op, dtype) },
      cell.map((c) => (c ? el("span", { class: `v v${c.verdict}` }, content(c))
        : el("span", { class: "v" }, "\u00b7"))));
  }

  // What a column sorts by: the worst verdict of the devices, and then how many cases fail.
  const weight = (cell) => {
    const own = (cell || []).filter(Boolean);
    return own.length ? Math.max(...own.map((c) => (6 - rank[c.verdict]) * 1e6 + c.failing)) : null;
  };

  const ran = (c) => c !== null && c.verdict !== 4 && c.verdict !== 5;
  const everything = el("input", { type: "checkbox", id: "without-kernel" });
  // Of how many ops, and of how many pairs of op and dtypes, the device ran a case of the selection.
  function breadth(run, rows, found) {
    const pairs = new Map();
    for (const i of found) {
      const v = cases.verdict(run, i), key = `${cases.opIndex(i)}/${cases.typeIndex(i)}`;
      if (v !== null) pairs.set(key, pairs.get(key) || (v !== 4 && v !== 5));
    }
    const own = rows.map((row) => Object.values(row.cells).map((cell) => cell[run.index])).filter((c) => c.some((x) => x !== null));
    return `${run.name}: ${cases.number(own.filter((c) => c.some(ran)).length)} of ${cases.number(own.length)} ops, `
      + `${cases.number([...pairs.values()].filter(Boolean).length)} of ${cases.number(pairs.size)} pairs of op and dtypes`;
  }

  function draw(selection, choose) {
    const { shown, found, verdict } = selection, all = cells(selection);
    const some = all.filter((row) => Object.values(row.cells).flat().some(ran));
    const rows = everything.checked || verdict !== "" ? all : some;
    everything.onchange = () => draw(selection, choose);
    const present = cases.columns.filter((t) => rows.some((r) => r.cells[t]));
    const grid = table({
      caption: `${rows.length} ops; devices in each cell: ${shown.map((r) => r.name).join(", ")}`,
      tall: true, chunk: 80, className: "matrix", sort: [0, 1],
      columns: [
        { title: "Op", head: true, value: (r) => r.op },
        { title: "Cases", numeric: true, value: (r) => r.cases },
        { title: "Failing", numeric: true, value: (r) => r.failing || null },
        ...present.map((t) => ({ title: t, numeric: false, value: (r) => weight(r.cells[t]), show: (r) => button(r, t, shown, choose) })),
      ],
    });
    grid.update(rows);
    holder.replaceChildren(
      el("p", { class: "muted" }, shown.map((run, k) => breadth({ ...run, index: k }, all, found)).join("; ")),
      el("label", {}, everything, " Ops without a kernel on these devices, too"), grid.node);
  }
  return { draw, node: holder };
})();
