// Fills the report: each section when it comes into view, and again when the filters change.
"use strict";
(() => {
  const { data, el, number } = page;
  const find = (name) => document.getElementById(name);
  const form = find("filters");
  const option = (value, label) => el("option", { value }, label);
  const choices = {
    device: [["", "all"], ...data.runs.map((r, k) => [k, r.name])],
    suite: [["", "all"], ...data.suites.map((s, k) => [k, s])],
    dtype: [["", "all"], ...cases.columns.map((t) => [t, t])],
    verdict: [["", "all"], ["failing", "any failure"], ...data.verdicts.map((v, k) => [k, v])],
  };
  for (const [name, pairs] of Object.entries(choices)) find(name).append(...pairs.map(([v, label]) => option(v, label)));
  const NAMES = ["search", ...Object.keys(choices)];

  let selection = null;
  const sections = {
    failures: () => overview.failures(selection, find("failures-content")),
    matrix: () => matrix.draw(selection, choose),
    accuracy: () => accuracy.draw(selection),
    cases: () => cases.draw(selection),
  };
  const stale = new Set(Object.keys(sections)), visible = new Set();
  const refresh = () => {
    for (const name of visible) if (stale.delete(name)) sections[name]();
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const name = e.target.id.replace("-content", "");
      if (e.isIntersecting) visible.add(name); else visible.delete(name);
    }
    refresh();
  }, { rootMargin: "300px" });

  // What filters say is in the address, too, so that a view can be sent to somebody.
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of NAMES) {
      const value = given.get(name) ?? "";
      if (name === "search" || [...find(name).options].some((o) => o.value === value)) find(name).value = value;
    }
  }
  function apply() {
    const filters = Object.fromEntries(NAMES.map((name) => [name, find(name).value]));
    const used = NAMES.filter((name) => filters[name] !== "");
    const address = new URLSearchParams(used.map((name) => [name, filters[name]])).toString();
    if (used.length || location.hash.includes("=")) history.replaceState(null, "", `#${address}`);
    selection = cases.select(filters);
    find("count").textContent = `${number(selection.found.length)} of ${number(cases.count)} cases`;
    for (const name of Object.keys(sections)) stale.add(name);
    refresh();
  }
  function choose(op, dtype) {
    find("search").value = `/${op}/`;
    find("dtype").value = dtype;
    apply();
    find("cases").scrollIntoView();
  }

  find("devices-content").append(overview.devices());
  find("levels-content").append(overview.levelTable(), ...overview.speeds(), overview.suiteTable());
  find("key").append(...data.verdicts.map((v, k) => cases.badge(k)));
  find("matrix-content").append(matrix.node);
  find("accuracy-content").append(accuracy.node);
  find("cases-content").append(cases.node);
  find("speed-content").append(...(data.benches.length ? speed.draw(data.benches)
    : [el("p", { class: "muted" }, "No bench is given. The file that conformance bench --json writes, given to the same command, appears here.")]));
  find("history-content").append(...overview.history());
  find("environment-content").append(...overview.environment());
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => { if (location.hash.includes("=")) { read(); apply(); } });
  if (location.hash.includes("=")) read();
  apply();
  for (const name of Object.keys(sections)) watcher.observe(find(`${name}-content`));
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
