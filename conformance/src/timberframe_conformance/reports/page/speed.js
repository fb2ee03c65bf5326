// What benches measured: against peers, against the roofline, and how it grows with sizes, batches and cores.
"use strict";
const speed = (() => {
  const { el, number, seconds, table } = page;
  const DEVICE = "device";

  // The two kinds of files alike: rows {name, batch, times: {side: seconds}, flops, bytes}, cores, peaks where measured.
  function read(bench) {
    const rows = new Map();
    if (bench.measurements) {
      for (const m of bench.measurements) {
        if (!rows.has(m.name)) rows.set(m.name, { name: m.name, times: {}, flops: m.flops, bytes: m.bytes });
        rows.get(m.name).times[m.side] = m.seconds;
      }
    } else {
      for (const m of bench.rows) {
        const times = Object.fromEntries(Object.entries(m.times).map(([side, t]) => [side, t.median]));
        rows.set(`${m.name} ${m.batch}`, { name: `${m.name}, batch ${m.batch}`, network: m.name, batch: m.batch, times });
      }
    }
    const cores = bench.method ? bench.method.threads : bench.environment.cores;
    return { rows: [...rows.values()], cores, peaks: bench.peaks, device: bench.device, environment: bench.environment };
  }
  const sidesOf = (bench) => [...new Set(bench.rows.flatMap((r) => Object.keys(r.times)))];

  // How many times as fast as each other side.
  function peers(bench) {
    const others = sidesOf(bench).filter((s) => s !== DEVICE);
    const rows = bench.rows.filter((r) => r.times[DEVICE] && others.some((s) => r.times[s])).map((r) => ({
      name: r.name, points: others.flatMap((s, k) => (r.times[s] ? [{ series: k, x: r.times[s] / r.times[DEVICE],
        tip: `${r.name}\n${bench.device}: ${seconds(r.times[DEVICE])}, ${s}: ${seconds(r.times[s])}` }] : [])) }));
    return rows.length ? [charts.dots({ title: `${bench.device} and others`, unit: "times as fast (right of the line: faster)",
      series: others.map((s) => `than ${s}`), rows, line: 1 })] : [];
  }

  // For each other system how many times as fast the device is, in the geometric mean of what both have run. A side with a
  // comma is a system run in another way, such as with weights in variables.
  function means(file) {
    const bench = read(file);
    return sidesOf(bench).filter((s) => s !== DEVICE && !s.includes(",")).flatMap((peer) => {
      const both = bench.rows.filter((r) => r.times[DEVICE] && r.times[peer]);
      const sum = both.reduce((total, r) => total + Math.log(r.times[peer] / r.times[DEVICE]), 0);
      return both.length ? [{ peer, ratio: Math.exp(sum / both.length), count: both.length }] : [];
    });
  }

  const roofOf = (peaks, at) => Math.min(peaks.operations, at * peaks.rate);

  // Rates of arithmetic by operations for each byte, below what peaks allow.
  function roofline(bench) {
    const p = bench.peaks;
    const rows = bench.rows.filter((r) => r.flops && r.bytes);
    if (!p || !rows.length) return [];
    const operations = p.given ? p.given[0] : p.of_the_device ? Math.max(p.multiply_add || 0, p.matmul || 0) : 0;
    const memory = p.given ? [["memory", p.given[1]]] : p.of_the_device ? [["caches", p.copy], ["memory", p.copy_memory]] : [];
    const sides = sidesOf(bench).filter((s) => rows.some((r) => r.times[s]));
    const points = sides.map((s) => rows.filter((r) => r.times[s]).map((r) => ({ x: r.flops / r.bytes, y: r.flops / r.times[s] / 1e9,
      tip: `${r.name}, ${s}\n${number(r.flops / r.times[s] / 1e9)} GFLOP/s, ${number(r.bytes / r.times[s] / 1e9)} GB/s, ${seconds(r.times[s])}` })));
    const xs = points.flat().map((q) => q.x), ys = points.flat().map((q) => q.y);
    const slopes = memory.filter(([, rate]) => rate).map(([name, rate]) => ({ name, rate, operations }));
    return [charts.plane({
      title: `Roofline of ${bench.device}`, series: sides, xs: [...xs, ...slopes.map((s) => operations / s.rate)],
      ys: [...ys, operations / 1e9 || null].filter((v) => v !== null), xLog: true, yLog: true,
      xUnit: "operations for each byte", yUnit: "GFLOP/s",
      note: slopes.length ? `At most ${number(operations / 1e9)} GFLOP/s; ${slopes.map((s) => `${number(s.rate / 1e9)} GB/s (${s.name})`).join(", ")}.`
        : "What the device can do at best is not known; conformance bench --peaks says it.",
      draw: (x, y) => [
        ...slopes.map((s, k) => roofLine(s, k, x, y)),
        ...points.flatMap((own, k) => own.map((q) => charts.mark(k, x.at(q.x), y.at(q.y), q.tip))),
        ...slopes.map((s, k) => roofName(s, k, x, y)),
      ],
    })];
  }
  // Where the slope of a roof begins in the chart, and where it ends.
  function slopeOf(slope, x, y) {
    const from = Math.max(x.low, y.low * 1e9 / slope.rate);
    return [from, Math.min(Math.max(slope.operations / slope.rate, from), x.high)];
  }
  function roofLine(slope, k, x, y) {
    const [from, ridge] = slopeOf(slope, x, y);
    const corners = [from, ridge, x.high].map((at) => `${x.at(at)},${y.at(roofOf(slope, at) / 1e9)}`);
    return page.svg("polyline", { points: corners.join(" "), fill: "none", stroke: "var(--text)", "stroke-width": 1.5, "stroke-dasharray": k ? "6 4" : null });
  }
  // The name of a roof beside its slope, with a rim that keeps it readable over points.
  function roofName(slope, k, x, y) {
    const [from, ridge] = slopeOf(slope, x, y);
    const label = from * (ridge / from) ** 0.3;
    return charts.text(x.at(label) + (k ? 8 : -8), y.at(roofOf(slope, label) / 1e9) + (k ? 12 : -6), slope.name,
      { class: "muted", "text-anchor": k ? "start" : "end", stroke: "var(--ground)", "stroke-width": 4, "paint-order": "stroke" });
  }

  // Kernels of one name and several sizes, such as matmul 64, 256 and 1024: rates by size.
  function bySize(bench) {
    const families = new Map();
    for (const r of bench.rows) {
      const found = /^(\D+) (\d+)$/.exec(r.name);
      if (found && r.flops) (families.get(found[1]) ?? families.set(found[1], []).get(found[1])).push({ ...r, size: Number(found[2]) });
    }
    return [...families].filter(([, own]) => own.length > 1).map(([name, own]) => {
      own.sort((a, b) => a.size - b.size);
      const sides = sidesOf(bench).filter((s) => own.some((r) => r.times[s]));
      return charts.lines({ title: `${name} by size, ${bench.device}`, series: sides, xLog: true, yLog: true, xUnit: "size", yUnit: "GFLOP/s",
        ticks: own.map((r) => r.size), xShow: String,
        rows: sides.map((s) => own.filter((r) => r.times[s]).map((r) => ({ x: r.size, y: r.flops / r.times[s] / 1e9,
          tip: `${r.name}, ${s}\n${number(r.flops / r.times[s] / 1e9)} GFLOP/s` }))) });
    });
  }

  // Networks at several batches: how much more a second the largest batch gives than the smallest.
  function byBatch(bench) {
    const networks = new Map();
    for (const r of bench.rows) if (r.network) (networks.get(r.network) ?? networks.set(r.network, []).get(r.network)).push(r);
    const sides = sidesOf(bench);
    const rows = [...networks].filter(([, own]) => own.length > 1).map(([name, own]) => {
      own.sort((a, b) => a.batch - b.batch);
      const few = own[0], many = own[own.length - 1];
      return { name: `${name}, ${few.batch} to ${many.batch}`, points: sides.flatMap((s, k) => (few.times[s] && many.times[s] ? [{
        series: k, x: (many.batch / many.times[s]) / (few.batch / few.times[s]),
        tip: `${name}, ${s}\nbatch ${few.batch}: ${number(few.batch / few.times[s])} a second\nbatch ${many.batch}: ${number(many.batch / many.times[s])} a second` }] : [])) };
    });
    return rows.length ? [charts.dots({ title: `Batches, ${bench.device}`, unit: "times as many inputs a second with the larger batch", series: sides, rows, line: 1 })] : [];
  }

  // Benches of one device with different numbers of cores: how many times as fast as with the fewest.
  function byCores(benches) {
    const groups = new Map();
    for (const b of benches) {
      const key = `${b.device}/${b.environment.processor}`; // times of two machines are not compared
      (groups.get(key) ?? groups.set(key, []).get(key)).push(b);
    }
    return [...groups.values()].flatMap((own) => {
      const device = own[0].device;
      const few = own.reduce((a, b) => (b.cores < a.cores ? b : a)), more = own.filter((b) => b.cores > few.cores).sort((a, b) => a.cores - b.cores);
      const rows = few.rows.map((r) => ({ name: r.name, points: more.flatMap((b, k) => {
        const other = b.rows.find((o) => o.name === r.name);
        return r.times[DEVICE] && other && other.times[DEVICE] ? [{ series: k, x: r.times[DEVICE] / other.times[DEVICE],
          tip: `${r.name}\n${few.cores}: ${seconds(r.times[DEVICE])}\n${b.cores}: ${seconds(other.times[DEVICE])}` }] : [];
      }) })).filter((r) => r.points.length);
      return rows.length ? [charts.dots({ title: `Cores, ${device}`, unit: `times as fast as with ${few.cores}`, series: more.map((b) => `${b.cores} cores`), rows, line: 1 })] : [];
    });
  }

  function times(bench) {
    const sides = sidesOf(bench);
    const roofs = bench.rows.some((r) => r.flops || r.bytes);
    const list = table({
      caption: `Times, ${bench.device}, ${bench.cores} core(s), ${bench.environment.processor || ""}`, tall: true, chunk: 100,
      columns: [
        { title: "What", head: true, value: (r) => r.name },
        ...sides.map((s) => ({ title: s, numeric: true, value: (r) => r.times[s], show: (r) => (r.times[s] ? seconds(r.times[s]) : "") })),
        ...(roofs ? [
          { title: "GFLOP/s", numeric: true, value: (r) => (r.flops && r.times[DEVICE] ? r.flops / r.times[DEVICE] / 1e9 : null) },
          { title: "GB/s", numeric: true, value: (r) => (r.bytes && r.times[DEVICE] ? r.bytes / r.times[DEVICE] / 1e9 : null) },
        ] : []),
      ],
    });
    list.update(bench.rows);
    return list.node;
  }

  function draw(files) {
    const benches = files.map(read);
    return [...benches.flatMap((b) => [...peers(b), ...roofline(b), ...bySize(b), ...byBatch(b)]), ...byCores(benches), ...benches.map(times)];
  }
  return { draw, means };
})();
