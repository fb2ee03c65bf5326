// The page of a trace: a timeline of the events in view, totals by what ran, and a table of all events.
"use strict";
(() => {
  const { data, el, svg, seconds, number, table } = page;
  const HEAD = 22, ROW = 20, GAP = 8, LEFT = 150;
  const find = (name) => document.getElementById(name);
  const holder = find("timeline");
  const time = (us) => seconds(us * 1e-6);
  const first = Math.min(...data.map((e) => e.start), Infinity), last = Math.max(...data.map((e) => e.start + e.length), -Infinity);
  const whole = data.length ? [first, Math.max(last, first + 1e-3)] : [0, 1];
  let view = [...whole];

  // Rows of a track: an event goes into the first row that has ended, so that what encloses others is above them.
  const tracks = [...new Set(data.map((e) => e.track))].map((name) => {
    const ends = [];
    const own = data.filter((e) => e.track === name).sort((a, b) => a.start - b.start || b.length - a.length);
    for (const e of own) {
      let row = ends.findIndex((end) => end <= e.start + 1e-9);
      if (row < 0) row = ends.length;
      ends[row] = e.start + e.length;
      e.row = row;
    }
    return { name, events: own, rows: ends.length };
  });
  const kinds = [...new Set(data.map((e) => e.kind))];
  const colour = (e) => `var(--c${kinds.indexOf(e.kind) % 7})`;
  const hint = (e) => [e.name, `${time(e.length)}, from ${time(e.start - first)}`, ...Object.entries(e.details).map(([k, v]) => `${k}: ${v}`)].join("\n");

  function draw() {
    const width = Math.max(holder.clientWidth, 300), [from, to] = view;
    const left = Math.min(LEFT, width / 3), at = (t) => left + (width - left) * (t - from) / (to - from);
    const parts = [];
    let y = HEAD;
    for (let k = 0; k <= 5; k++) {
      const t = from + (to - from) * k / 5;
      parts.push(svg("line", { class: "grid", x1: at(t), x2: at(t), y1: 0, y2: 9999 }));
      if (k < 5) parts.push(svg("text", { class: "muted", x: at(t) + 4, y: 14 }, time(t - first)));
    }
    for (const track of tracks) {
      parts.push(svg("text", { x: 6, y: y + 14 }, track.name.length > 22 ? `\u2026${track.name.slice(-21)}` : track.name));
      let shown = -1;
      for (const e of track.events) {
        if (e.start > to || e.start + e.length < from) continue;
        const x = Math.max(at(e.start), left), end = Math.min(at(e.start + e.length), width), size = Math.max(end - x, 1);
        if (size === 1 && Math.round(x) + e.row / 100 === shown) continue; // hidden by the one before it
        shown = size === 1 ? Math.round(x) + e.row / 100 : -1;
        parts.push(svg("rect", { class: "event", x, y: y + e.row * ROW, width: size, height: ROW - 2, fill: colour(e), rx: 2, "data-tip": hint(e) }));
        const letters = Math.floor((size - 8) / 6.5);
        if (letters > 2) parts.push(svg("text", { class: "label", x: x + 4, y: y + e.row * ROW + 13 }, e.name.length > letters ? `${e.name.slice(0, letters - 1)}\u2026` : e.name));
      }
      y += track.rows * ROW + GAP;
    }
    holder.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${y}`, height: y }, parts));
    find("window").textContent = `${time(from - first)} to ${time(to - first)} of ${time(whole[1] - whole[0])}`;
  }

  // Zooms around a place between 0 and 1 of what is in view; moves by a part of it.
  function zoom(factor, place = 0.5) {
    const middle = view[0] + (view[1] - view[0]) * place, size = Math.max((view[1] - view[0]) * factor, 0.01);
    go([middle - size * place, middle + size * (1 - place)]);
  }
  const move = (part) => go(view.map((t) => t + part * (view[1] - view[0])));
  function go([from, to]) {
    const size = Math.min(to - from, whole[1] - whole[0]);
    const start = Math.max(Math.min(from, whole[1] - size), whole[0]); // the start of the run last: that difference is rounded
    view = [start, start + size];
    draw();
  }
  const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), 0: () => go(whole) };
  holder.addEventListener("keydown", (event) => { if (keys[event.key]) { event.preventDefault(); keys[event.key](); } });
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = holder.getBoundingClientRect(), left = Math.min(LEFT, box.width / 3);
    zoom(event.deltaY > 0 ? 1.3 : 0.77, Math.max(0, (event.clientX - box.left - left) / (box.width - left)));
  }, { passive: false });
  find("nearer").addEventListener("click", () => zoom(0.5));
  find("farther").addEventListener("click", () => zoom(2));
  find("all").addEventListener("click", () => go(whole));
  addEventListener("resize", draw);

  function totals() {
    const groups = new Map();
    for (const e of data) {
      const name = e.details.op || e.name, key = `${e.kind}/${name}/${e.details.kernel || ""}`;
      const group = groups.get(key) ?? groups.set(key, { name, kind: e.kind, kernel: e.details.kernel || "", count: 0, length: 0 }).get(key);
      group.count += 1;
      group.length += e.length;
    }
    const made = table({
      caption: "By what ran; what encloses other events has their time, too", tall: true, sort: [1, -1],
      columns: [
        { title: "What", head: true, value: (g) => g.name },
        { title: "Time", numeric: true, value: (g) => g.length, show: (g) => time(g.length) },
        { title: "Of the run", numeric: true, value: (g) => g.length, show: (g) => `${number(100 * g.length / (whole[1] - whole[0]))}%` },
        { title: "Kind", value: (g) => g.kind },
        { title: "Kernel", value: (g) => g.kernel },
        { title: "Events", numeric: true, value: (g) => g.count },
      ],
    });
    made.update([...groups.values()]);
    return made.node;
  }
  const list = table({
    caption: "All events", tall: true, sort: [2, 1],
    columns: [
      { title: "Name", head: true, value: (e) => e.name, show: (e) => el("button", { type: "button", class: "link", title: "show in the timeline",
        onclick: () => { go([e.start - e.length, e.start + 2 * e.length]); holder.scrollIntoView(); } }, e.name) },
      { title: "Track", value: (e) => e.track },
      { title: "Start", numeric: true, value: (e) => e.start, show: (e) => time(e.start - first) },
      { title: "Time", numeric: true, value: (e) => e.length, show: (e) => time(e.length) },
      { title: "Details", show: (e) => Object.entries(e.details).map(([k, v]) => `${k}: ${v}`).join("; ") },
    ],
  });
  const texts = new Map(data.map((e) => [e, `${e.name} ${e.track} ${Object.values(e.details).join(" ")}`.toLowerCase()]));
  find("search").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    list.update(data.filter((e) => words.every((w) => texts.get(e).includes(w))));
  });
  list.update(data);
  find("totals").append(totals());
  find("events").append(list.node);
  draw();
})();
