// The cases of a report, what the filters select of them, and the table of cases.
"use strict";
const cases = (() => {
  const { data, el, number, table } = page;
  const { suites, ops, types, details, kernels, verdicts, runs } = data;
  const { suite, op, types: type, detail } = data.cases;
  const count = op.length;
  const ABSENT = "-", NETWORK = "Model";
  const MARKS = ["\u2713", "\u2717", "!", "\u2026", "\u2013", "n/a", "w"];
  const column = types.map((label) => (label === "-" ? "any" : label.split(",")[0]));
  const columns = [...new Set([...data.dtypes.filter((t) => column.includes(t)), ...column])];

  const id = (i) => `${suites[suite[i]]}/${ops[op[i]]}/${types[type[i]]}/${details[detail[i]]}`;
  const verdict = (run, i) => (run.verdict[i] === ABSENT ? null : Number(run.verdict[i]));
  // Whether a case passed or failed of an op; networks, and what has no dtypes, are none.
  const ranOp = (run, i) => ["0", "1", "2", "3"].includes(run.verdict[i]) && types[type[i]] !== "-" && ops[op[i]] !== NETWORK;
  const badge = (v, text, label) => el("span", { class: `v v${v}`, title: label || verdicts[v] }, text || `${MARKS[v]} ${verdicts[v]}`);

  const lower = [suites, ops, types, details].map((texts) => texts.map((t) => t.toLowerCase()));
  const fields = [suite, op, type, detail];

  // What selects a case for one word: it is in one part of the id or, with a slash in it, in the whole of it.
  function word(text) {
    if (text.includes("/")) return (i) => id(i).toLowerCase().includes(text);
    const hits = lower.map((texts) => texts.map((t) => t.includes(text)));
    return (i) => hits.some((hit, k) => hit[fields[k][i]]);
  }

  // The numbers of the selected cases, and the devices that are shown.
  function select({ search, device, suite: s, dtype, verdict: v }) {
    const shown = runs.filter((r, k) => device === "" || k === Number(device));
    const words = search.toLowerCase().split(/\s+/).filter(Boolean).map(word);
    const wanted = v === "" ? null : v === "failing" ? data.failing.map((name) => String(verdicts.indexOf(name))) : [v];
    const found = [];
    for (let i = 0; i < count; i++) {
      if (s !== "" && suite[i] !== Number(s)) continue;
      if (dtype !== "" && column[type[i]] !== dtype) continue;
      if (!shown.some((r) => (wanted ? wanted.includes(r.verdict[i]) : r.verdict[i] !== ABSENT))) continue;
      if (words.every((matches) => matches(i))) found.push(i);
    }
    return { shown, found, verdict: v };
  }

  function said(run, i) {
    const texts = run.texts[i] || {};
    const parts = ["message", "note", "worst"].filter((k) => texts[k]).map((k) => (k === "worst" ? `worst at ${texts[k]}` : texts[k]));
    const kernel = run.kernel[i] === null ? "" : kernels[run.kernel[i]];
    const more = [kernel && `kernel: ${kernel}`, texts.waiver && `waiver: ${texts.waiver}`, texts.repro].filter(Boolean);
    return el("div", {}, parts.join("; "), more.length
      ? el("details", {}, el("summary", {}, "more"), el("pre", {}, more.join("\n"))) : null);
  }

  // One row for each case and device.
  const list = table({
    caption: "Cases, one row for each device", tall: true, className: "cases", sort: null,
    columns: [
      { title: "Case", head: true, value: (r) => id(r.i), show: (r) => el("code", {}, id(r.i)) },
      { title: "Device", value: (r) => r.run.name },
      { title: "Verdict", value: (r) => verdict(r.run, r.i), show: (r) => badge(verdict(r.run, r.i)) },
      { title: "Error (ULP)", numeric: true, value: (r) => r.run.ulp[r.i] },
      { title: "Limit (ULP)", numeric: true, value: (r) => r.run.limit[r.i] },
      { title: "Time (ms)", numeric: true, hint: "of judging the case, not of its kernel", value: (r) => r.run.ms[r.i] },
      { title: "What it says", show: (r) => said(r.run, r.i) },
    ],
  });
  function draw({ shown, found }) {
    const rows = [];
    for (const i of found) for (const run of shown) if (run.verdict[i] !== ABSENT) rows.push({ run, i });
    list.update(rows);
  }

  return {
    ABSENT, MARKS, badge, column, columns, count, draw, id, node: list.node, number, ranOp, select, verdict,
    op: (i) => ops[op[i]], type: (i) => types[type[i]], typeIndex: (i) => type[i], opIndex: (i) => op[i], suiteIndex: (i) => suite[i],
  };
})();
