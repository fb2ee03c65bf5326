"""The last part of a finding's script: it does what the oracle did and exits with status 1 if results differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timberframe_conformance.fuzz.expected import Expected
from timberframe_conformance.repro import array_source

SETUP = '''

def check(what, got, expected, allowed=None):
    """Compares results; allowed: errors by element, without which the bits must be the same."""
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        g, e = (np.asarray(x, object if isinstance(x, bytes) else None) for x in (g, e))
        same = g.shape == e.shape
        if same and allowed is None:
            wrong = (g != e) & ~((g != g) & (e != e))
            if g.dtype.kind in "fV":
                wrong |= (g == e) & (np.signbit(g) != np.signbit(e))
            same = g.dtype == e.dtype and not wrong.any()
        elif same and g.dtype.hasobject:
            same = bool((g == e).all())
        elif same:
            wide = np.complex128 if g.dtype.kind == "c" else np.float64
            with np.errstate(all="ignore"):
                near = np.abs(g.astype(wide) - e.astype(wide)) <= allowed[i]
            same = bool(((g == e) | near | ((g != g) & (e != e)) | np.isposinf(allowed[i])).all())
        if not same:
            print(f"{what}, result {i}:\\ngot      {g!r}\\nexpected {e!r}")
            sys.exit(1)


def session(**config):
    made = tf.Session(config=tf.SessionConfig(allow_soft_placement=True, **config))
    made.run([v.initializer for v in variables])
    return made


def run(session, fetches, feeds):
    session.run([v.initializer for v in variables])
    return session.run(fetches, feeds)


with session() as s:
    first = run(s, fetches, feeds)
'''

CLOSE = "twice = [2 * a for a in allowed]\n"

ALONE = """for i, fetch in enumerate(fetches):
    with session() as s:
        for _ in range(2):
            check(f"result {i} fetched alone", [run(s, fetch, feeds)], [first[i]], [twice[i]])
"""

FETCHES = """lists = {t: x.tolist() if x.size and x.dtype.kind != "V" else x for t, x in feeds.items()}
ways = [fetches[0]], tuple(fetches), [fetches[0], *fetches], [t.name for t in fetches]
for way in ways:
    indices = [0] if len(way) == 1 else [0, *range(len(fetches))] if len(way) > len(fetches) else range(len(fetches))
    with session() as s:
        for number, given in enumerate((feeds, feeds, lists), 1):
            got = run(s, way, given)
            if type(got) is not type(way) or len(got) != len(way):
                print(f"run {number} of {way}:\\ngot      {got!r}\\nexpected a {type(way).__name__} of {len(way)}")
                sys.exit(1)
            check(f"run {number} of {way}", got, [first[i] for i in indices], [twice[i] for i in indices])
"""

CALLABLE = """with session() as s:
    call = s.make_callable(fetches, list(feeds))
    for number in range(3):
        s.run([v.initializer for v in variables])
        check(f"call {number + 1}", call(*feeds.values()), first, twice)
"""

AGAIN = """with session() as s:
    for number in range(4):
        check(f"run {number + 1}", run(s, fetches, feeds), first)
"""

ONE_THREAD = """with session(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1) as s:
    check("with one thread", run(s, fetches, feeds), first)
"""

NAMES = """with session() as s:
    check("fed by name", run(s, fetches, {t.name: x for t, x in feeds.items()}), first)
"""

FEEDS = """with session() as s:
    for form, given in 2 * [(name, {t: change(x) for t, x in feeds.items()}) for name, change in FORMS.items()]:
        arrays = {t: x for t, x in given.items() if isinstance(x, np.ndarray)}
        before = [x.copy() for x in arrays.values()]
        check(f"fed with {form}", run(s, fetches, given), first)
        check(f"the arrays fed with {form}, after the run", arrays.values(), before)
"""

THREADS = """with session() as s, ThreadPoolExecutor(3) as pool:
    for got in pool.map(lambda _: s.run(fetches, feeds), range(6)):
        check("a run in parallel to others", got, first)
"""

GRAPH_DEF = """message = tf.get_default_graph().as_graph_def()
with tf.Graph().as_default() as graph:
    tf.import_graph_def(type(message).FromString(message.SerializeToString(deterministic=True)), name="")
count, again = len(message.node), len(graph.as_graph_def().node)
if again != count:
    print(f"{count} nodes were written; read and written again there are {again}")
    sys.exit(1)
with tf.Session(graph=graph, config=tf.SessionConfig(allow_soft_placement=True)) as s:
    s.run([v.initializer.name for v in variables])
    got = s.run([t.name for t in fetches], {t.name: x for t, x in feeds.items()})
    check("the graph that was written and read again", got, first)
"""

PASSES = """with session() as s:
    names = [p.name for p in s.explain(fetches, feeds).passes]
for off in (*([name] for name in names), names):
    with session(optimizations=dict.fromkeys(off, False)) as s:
        for number in range(2):
            check(f"run {number + 1} without {off}", run(s, fetches, feeds), first, twice)
"""

TRUTH = 'check("the first run", first, expected, allowed)\n'

VARIANT = """    with session() as s:
        for number in range(2):
            check(f"run {{number + 1}} with {what}", run(s, fetches, feeds), first, twice)
"""
"""What a script does with each of the other graphs that an oracle compares with."""

CHECKS = {
    "run": "",
    "truth": TRUTH,
    "again": AGAIN,
    "one thread": ONE_THREAD,
    "threads": THREADS,
    "feeds": FEEDS,
    "feed names": NAMES,
    "GraphDef": GRAPH_DEF,
    "passes": CLOSE + PASSES,
    "each alone": CLOSE + ALONE,
    "fetches": CLOSE + FETCHES,
    "make_callable": CLOSE + CALLABLE,
    "shapes": CLOSE,
    "placement": CLOSE,
}
"""By oracle what the script does after the first run."""

REPLAYED = frozenset({"batch", "fed intermediate", "slopes", "tensorflow", "versions", "streams", "process"})
"""Oracles with parts of the suite in them: their scripts have the suite judge the stored finding beside the script."""

REPLAY = """
sys.exit(main([{arguments}, "--replay", str(Path(__file__).with_suffix(".json"))]))
"""

WITHOUT_LIMITS = ("run", "again", "one thread", "threads", "feeds", "feed names", "GraphDef")


def limits_source(expected: Sequence[Expected | None], with_values: bool) -> str:
    """Lists of expected values and of errors allowed, infinite where a result is not determined."""
    values, allowed = [], []
    for e in expected:
        if e is None:
            values.append("None")
            allowed.append("np.inf")
            continue
        limit = np.zeros(e.value.shape) if e.limit is None else np.broadcast_to(e.limit, e.value.shape)
        allowed.append(_source(np.where(e.determined, limit, np.inf).astype(np.float64)))
        values.append(_source(e.value))
    lines = [f"allowed = [{', '.join(allowed)}]"]
    if with_values:
        wanted = [f"first[{i}]" if v == "None" else v for i, v in enumerate(values)]
        lines.insert(0, f"expected = [{', '.join(wanted)}]")
    return "\n".join(lines) + "\n"


def _source(x: np.ndarray) -> str:
    return array_source(x).split("  #")[0]
