// What a report says before any case: devices, levels, failures by cause, history, environment.
"use strict";
const overview = (() => {
  const { data, el, number, table } = page;
  const { runs, verdicts, levels } = data;
  const SHOWN_CASES = 200, SHOWN_CAUSES = 25;
  const grid = (caption, columns, rows) => {
    const made = table({ caption, columns, chunk: 500 });
    made.update(rows);
    return made.node;
  };
  const yes = (is) => el("span", { class: is ? "yes" : "no" }, is ? "\u2713 yes" : "\u2717 no");

  // The number of ops of which a device passed or failed a case.
  function opsOf(run) {
    const found = new Set();
    for (let i = 0; i < cases.count; i++) if (cases.ranOp(run, i)) found.add(cases.opIndex(i));
    return found.size;
  }
  const devices = () => grid("The newest run of each device", [
    { title: "Device", head: true, value: (r) => r.name },
    ...["vendor", "model", "driver"].filter((part) => runs.some((r) => r.device[part]))
      .map((part) => ({ title: part[0].toUpperCase() + part.slice(1), value: (r) => r.device[part] || "" })),
    { title: "Level reached", value: (r) => [...levels].reverse().find((l) => r.reached[l]?.reached) || "none" },
    { title: "Ops", numeric: true, hint: "of which a case passed or failed", value: opsOf },
    { title: "Cases", numeric: true, value: (r) => r.count },
    ...verdicts.filter((v) => runs.some((r) => r.counts[v])).map((v) => ({ title: v, numeric: true, value: (r) => r.counts[v] })),
    { title: "Run", value: (r) => r.environment.date || "", show: (r) => `${(r.environment.date || "").slice(0, 10)}${r.not_run ? `, stopped before ${number(r.not_run)} cases` : r.partial ? ", part of the suite" : ""}` },
    { title: "Suite", value: (r) => r.suite_version },
  ], runs);

  // The networks of a level: how many a device runs right, and which it does not.
  const networks = (level) => data.networks[level] || [];
  function whole(run, level) {
    const tried = networks(level).filter((n) => cases.verdict(run, n.case) !== null);
    if (!tried.length) return null;
    const wrong = tried.filter((n) => cases.verdict(run, n.case) !== 0);
    return el("div", {}, `${number(tried.length - wrong.length)} of ${number(tried.length)} networks run right`,
      ...wrong.map((n) => el("div", { class: "no" }, `\u2717 ${n.name}: ${verdicts[cases.verdict(run, n.case)]}`)));
  }

  function reached(run, level) {
    const found = run.reached[level];
    if (!found || !found.cases) return el("span", { class: "muted" }, "not run");
    const missing = found.missing;
    return el("div", {}, found.reached ? yes(true) : run.partial ? el("span", { class: "muted" }, "part of the suite") : yes(false),
      ` ${number(found.cases)} cases`, found.failing ? `, ${number(found.failing)} failing` : "",
      missing.length ? el("details", {}, el("summary", {}, `${number(missing.length)} missing`),
        el("ul", {}, missing.slice(0, SHOWN_CASES).map((m) => el("li", {}, el("code", {}, m))),
          missing.length > SHOWN_CASES ? el("li", {}, `and ${number(missing.length - SHOWN_CASES)} more`) : null)) : null,
      whole(run, level));
  }
  // How many times as fast as each peer a bench found the device, in the geometric mean.
  const speeds = () => data.benches.filter((bench) => speed.means(bench).length).map((bench) =>
    el("p", {}, `${bench.device.replace("/device:", "")}, by the geometric mean of `, el("a", { href: "#speed" }, "measurements"), ": ",
      speed.means(bench).flatMap(({ peer, ratio, count }, k) =>
        [k ? ", " : "", el("strong", {}, `${ratio.toPrecision(3)} times as fast as ${peer}`), ` (${number(count)})`]), "."));
  const levelTable = () => grid("Levels by device", [
    { title: "Level", head: true, show: (l) => el("div", {}, l,
      el("div", { class: "muted networks" }, networks(l).map((n) => n.name).join(", ") || (l === "breadth" ? "all other ops and dtypes" : ""))) },
    ...runs.map((r) => ({ title: r.name, show: (l) => reached(r, l) })),
  ], levels);

  // Verdicts and the time of judging by suite.
  function suiteTable() {
    const rows = data.suites.map((name, k) => ({ name, k, own: runs.map(() => ({ pass: 0, failing: 0, other: 0, ms: 0 })) }));
    runs.forEach((run, d) => {
      for (let i = 0; i < cases.count; i++) {
        const v = cases.verdict(run, i);
        if (v === null) continue;
        const sum = rows[cases.suiteIndex(i)].own[d];
        sum[v === 0 ? "pass" : v <= 3 ? "failing" : "other"] += 1;
        sum.ms += run.ms[i];
      }
    });
    const column = (run, d, title, key) => ({ title: `${run.name} ${title}`, numeric: true, value: (r) => r.own[d][key] });
    return el("details", {}, el("summary", {}, "Suites"), grid("Cases and seconds by suite", [
      { title: "Suite", head: true, value: (r) => r.name },
      ...runs.flatMap((run, d) => [column(run, d, "pass", "pass"), column(run, d, "failing", "failing"), column(run, d, "other", "other"),
        { title: "seconds", numeric: true, value: (r) => r.own[d].ms / 1e3, show: (r) => number(r.own[d].ms / 1e3) }]),
    ], rows));
  }

  function failure(run, group, found) {
    const copy = el("button", { type: "button", onclick: async () => {
      await navigator.clipboard.writeText(group.repro);
      copy.textContent = "Copied";
    } }, "Copy");
    const others = found.slice(1, SHOWN_CASES);
    return el("article", { class: "failure" },
      el("h3", {}, cases.badge(verdicts.indexOf(group.verdict)), ` ${run.name}: ${cases.id(found[0])}`),
      el("p", {}, group.message),
      el("div", { class: "command" }, el("pre", {}, group.repro), navigator.clipboard ? copy : null),
      others.length ? el("details", {}, el("summary", {}, `and ${number(found.length - 1)} more for the same reason`),
        el("ul", {}, others.map((i) => el("li", {}, el("code", {}, cases.id(i)))),
          found.length > SHOWN_CASES ? el("li", {}, `and ${number(found.length - SHOWN_CASES)} more`) : null)) : null);
  }
  // Those with a selected case, the most frequent first.
  function failures({ shown, found }, holder) {
    const selected = new Set(found);
    const groups = shown.flatMap((run) => run.failures.map((group) => ({ run, group, own: group.cases.filter((i) => selected.has(i)) })))
      .filter((g) => g.own.length).sort((a, b) => b.own.length - a.own.length);
    const cause = groups.length === 1 ? "cause" : "causes";
    const total = groups.reduce((n, g) => n + g.own.length, 0);
    const articles = groups.slice(0, SHOWN_CASES).map((g) => failure(g.run, g.group, g.own));
    const rest = articles.splice(SHOWN_CAUSES);
    holder.replaceChildren(
      el("p", { class: "muted" }, groups.length ? `${number(total)} failing cases for ${number(groups.length)} ${cause}` : "None in this selection."),
      ...articles,
      rest.length ? el("details", {}, el("summary", {}, `${number(rest.length)} more causes`), rest) : "",
      groups.length > SHOWN_CASES ? el("p", {}, `and ${number(groups.length - SHOWN_CASES)} others, which filters show`) : "");
  }

  function changes(point) {
    if (!point.changes.length) return "";
    const text = Object.entries(point.labels).map(([label, n]) => `${number(n)} ${label}`).join(", ");
    return el("details", {}, el("summary", {}, text), el("ul", {}, point.changes.map(([label, id, before, after, detail]) =>
      el("li", {}, `${label} `, el("code", {}, id), `: ${before} \u2192 ${after}${detail ? ` (${detail})` : ""}`))));
  }
  function history() {
    const long = data.history.filter((h) => h.points.length > 1);
    if (!long.length) return [el("p", { class: "muted" }, "Each device has one run here. Reports of earlier runs, given to the same command, appear as its history.")];
    const failing = (p) => data.failing.reduce((n, v) => n + p.counts[v], 0);
    const days = (p) => Date.parse(p.date) / 864e5;
    const first = Math.min(...long.flatMap((h) => h.points.map(days)));
    const chart = charts.lines({
      title: "Failing cases of each run", series: long.map((h) => h.name), xLog: false, yLog: false,
      xUnit: `days since ${new Date(first * 864e5).toISOString().slice(0, 10)}`, yUnit: "failing cases",
      rows: long.map((h) => h.points.map((p) => ({ x: days(p) - first, y: failing(p), tip: `${h.name}, ${p.date}\n${number(failing(p))} of ${number(p.count)} cases fail` }))),
    });
    const rows = long.flatMap((h) => h.points.map((p) => ({ h, p })));
    return [chart, grid("Runs", [
      { title: "Date", head: true, value: (r) => r.p.date },
      { title: "Device", value: (r) => r.h.name },
      { title: "Levels reached", value: (r) => r.p.reached.join(", ") },
      { title: "Cases", numeric: true, value: (r) => r.p.count },
      { title: "Failing", numeric: true, value: (r) => failing(r.p) },
      { title: "Suite", value: (r) => r.p.suite_version },
      { title: "Commit", value: (r) => r.p.git, show: (r) => el("code", {}, r.p.git.slice(0, 12)) },
      { title: "Changes since the run before", show: (r) => changes(r.p) },
    ], rows)];
  }

  const line = (label, content) => (content && content.length ? el("p", {}, el("strong", {}, `${label}: `), content) : null);
  const pairs = (object) => Object.entries(object || {}).map(([k, v]) => `${k} ${v}`).join(", ");
  function environment(run) {
    const e = run.environment;
    return el("details", { open: runs.length === 1 }, el("summary", {}, run.name),
      line("Machine", [e.processor, e.cores && `${e.cores} cores`, e.system, e.python && `Python ${e.python}`].filter(Boolean).join(", ")),
      line("Packages", pairs(e.packages)), line("Plugins", pairs(e.plugins)),
      line("Suite", [run.suite_version, e.suite_hash && `files ${e.suite_hash}`, e.git && `commit ${e.git}`].filter(Boolean).join(", ")),
      line("Time", `${number(run.seconds)} s`),
      line("Variables", pairs(e.variables)), line("Dtypes of the device, for which breadth asks", (run.device.dtypes || []).join(", ")),
      line("Computed by references, which counts for no level", pairs(run.fallback)),
      ...Object.entries(run.left).map(([reason, ops]) => line("Left to the host", `${ops.join(", ")}: ${reason}`)),
      line("No case for this device", run.idle.join(", ")), line("Plugins left out", pairs(e.plugins_left_out)),
      ...(run.profile.waivers || []).map((w) => line("Waiver", `${w.name}, until ${w.expires}: ${w.reason}`)),
      ...(run.profile.tolerances || []).map((w) => line("Tolerance", `${w.name}, until ${w.expires}: ${w.reason}`)),
      ...run.remarks.map((text) => line("Profile", text)));
  }
  return { devices, levelTable, speeds, suiteTable, failures, history, environment: () => runs.map(environment) };
})();
