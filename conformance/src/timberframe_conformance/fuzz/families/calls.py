"""Calls in sequence and from threads: variables with assigns, several callables and sessions."""

from __future__ import annotations

from timberframe_conformance.fuzz.families.family import Drawer, Family, indented

UPDATES = ("assign", "assign_add", "assign_sub")


def draw(d: Drawer) -> str:
    """Returns a program of one kind: functions in sequence, sessions and callables in sequence, or calls from threads."""
    return d.choose([_functions, _functions, _sessions, _sessions, _threads])(d)


def _value(d: Drawer, shape: tuple[int, ...]) -> str:
    return f"np.array({d.rng.integers(-9, 10, shape).tolist()}, np.float64)"


def _body(d: Drawer, names: list[str], argument: str) -> list[str]:
    """Statements that update and read variables; results are whole numbers, which floats hold exactly."""
    lines = []
    for _ in range(d.whole(1, 3)):
        v, w = d.choose(names), d.choose(names)
        value = d.choose(
            [argument, f"{w} + {argument}", f"{w} * 2.0 - {v}", f"tf.reduce_sum({w}) + {v} * 0.0", f"-{w}"]
        )
        update = f"{v}.{d.choose(UPDATES)}({value})"
        kind = d.whole(0, 9)
        if kind < 6:
            lines.append(update)
        elif kind < 8:
            other = f"{w}.{d.choose(UPDATES)}({argument} * 2.0)"
            lines += [
                f"def yes():\n    {update}\n    return {w} * 1.0",
                f"def no():\n    {other}\n    return {v} * 1.0",
            ]
            lines.append(f"kept = tf.cond(tf.reduce_sum({d.choose(names)}) > {d.whole(-9, 9)}.0, yes, no)")
        else:
            lines.append(
                f"{v}.scatter_{d.choose(['add', 'sub', 'update'])}(tf.IndexedSlices({argument}[:1], [{d.whole(0, 2)}]))"
            )
    return lines


def _functions(d: Drawer) -> str:
    """Functions of tf.function that update variables, called in sequence."""
    names = [d.name("v") for _ in range(d.whole(1, 3))]
    lines = [f"{n} = tf.Variable({_value(d, (3,))}, use_resource=True)" for n in names]
    made: list[str] = []
    for _ in range(d.whole(1, 3)):
        name = d.name("f")
        body = _body(d, names, "x")
        if made and d.chance(0.3):
            body.insert(d.whole(0, len(body)), f"x = {d.choose(made)}(x * 0.0 + 1.0)")
        body.append(f"return {d.choose(names)} + x * {d.whole(-2, 2)}.0")
        lines += [*["@tf.function"] * d.chance(0.8), f"def {name}(x):", *indented(body)]
        made.append(name)
    for _ in range(d.whole(2, 6)):
        lines.append(f"show('result', {d.choose(made)}(tf.constant({_value(d, (3,))})))")
        if d.chance(0.3):
            lines.append(f"{d.choose(names)}.{d.choose(UPDATES)}({_value(d, (3,))})")
    lines.append(f"show('variables', [{', '.join(names)}])")
    return "\n".join(lines) + "\n"


def _sessions(d: Drawer) -> str:
    """Returns a program of runs, callables and partial runs of sessions of one graph, each with its own variables."""
    names = [d.name("v") for _ in range(d.whole(1, 3))]
    resource = d.choose([True, True, False])
    lines = ["with tf.Graph().as_default() as graph:", "    x = tf.placeholder(tf.float64, [3])"]
    lines += [f"    {n} = tf.Variable({_value(d, (3,))}, use_resource={resource})" for n in names]
    fetches = []
    for _ in range(d.whole(2, 4)):
        name = d.name("u")
        v, w = d.choose(names), d.choose(names)
        value = d.choose(
            ["x", f"{w} + x", f"{w} * 2.0 - x", f"tf.cond(tf.reduce_sum({w}) > 0.0, lambda: x, lambda: {w} + 0.0)"]
        )
        lines.append(f"    {name} = {v}.{d.choose(UPDATES)}({value})")
        read = d.name("r")
        lines += [
            f"    with tf.control_dependencies([{name}]):",
            f"        {read} = {d.choose(names)}.read_value() + x",
        ]
        fetches += [read, f"{name}.op"]
    reads = [f"{n}.read_value()" for n in names]
    lines.append(f"    sums = tf.add_n([{', '.join(reads)}])")
    lines += ["    start = tf.global_variables_initializer()", "    saver = None"]
    sessions = [d.name("s") for _ in range(d.whole(1, 2))]
    for s in sessions:
        lines += [f"{s} = tf.Session(graph=graph)", f"{s}.run(start)"]
        lines.append(f"{s}_call = {s}.make_callable({d.choose([f for f in fetches if '.' not in f])}, feed_list=[x])")
    for _ in range(d.whole(3, 8)):
        s = d.choose(sessions)
        given = _value(d, (3,))
        lines.append(
            d.choose(
                [
                    f"show('run', {s}.run({d.choose(fetches)}, {{x: {given}}}))",
                    f"show('call', {s}_call({given}))",
                    f"show('sums', {s}.run(sums))",
                    f"show('variables', {s}.run([{', '.join(names)}]))",
                    f"show('fed', {s}.run([sums, x], {{x: {given}}}))",
                ]
            )
        )
        if d.chance(0.1):
            lines.append(f"{s}.run(start)")
    lines += [f"show('last', {s}.run([{', '.join(names)}]))" for s in sessions]
    return "\n".join(lines) + "\n"


def _threads(d: Drawer) -> str:
    """Returns a program of threads that add to, assign and read one variable; `in_threads` judges what they saw."""
    count, each = d.whole(2, 3), d.whole(2, 4)
    kinds = [("add", 1, 9), ("add", 1, 9), ("assign", 10, 99), ("read", 0, 0)]
    lines = []
    for k in range(count):
        drawn = [d.choose(kinds) for _ in range(each)]
        lines.append(f"calls{k} = {[(kind, d.whole(low, high)) for kind, low, high in drawn]}")
    way = d.choose(["function", "session", "callable"])
    listed = ", ".join(f"calls{k}" for k in range(count))
    lines.append(f"in_threads(tf, show, [{listed}], {d.whole(0, 9)}.0, {way!r}, {d.choose([3, 3000])})")
    return "\n".join(lines) + "\n"


FAMILY = Family(
    "calls",
    "calls in sequence against a model of variables, and from threads, whose results some order explains",
    draw,
    model="timberframe_conformance.fuzz.families.calls_model",
)
