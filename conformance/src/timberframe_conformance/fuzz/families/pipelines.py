"""Pipelines of tf.data: elements and their order."""

from __future__ import annotations

import re

from timberframe_conformance.fuzz.families.family import Drawer, Family, indented

SCALAR, ROW, PAIR, ANY = "a number", "a row of numbers", "two numbers", "a row of any length"
"""Kinds of elements; rows of a dataset of ROW are equally long but for the last."""

MOST = 60
"""Greatest number of elements that are looked at; `repeat` without a count gives any number."""


def draw(d: Drawer) -> str:
    """Returns a program that makes up to three datasets, joins them, and shows the elements of the last, twice."""
    lines = [f"tf.set_random_seed({d.whole(0, 99)})"] if d.chance(0.8) else []
    random = bool(lines) and d.chance(0.5)
    made = []
    for _ in range(d.whole(1, 3)):
        name, kind = d.name("d"), SCALAR
        lines.append(f"{name} = {_source(d)}")
        for _ in range(d.whole(0, 3)):
            text, kind = _step(d, kind, random)
            lines.append(f"{name} = {name}{text}")
        made.append((name, kind))
    name, kind = made[0]
    for _ in range(d.whole(0, 2)):
        others = [n for n, k in made if k == SCALAR]
        if kind == SCALAR and others and d.chance(0.8):
            text, kind = _join(d, name, others, random)
            lines.append(f"{name} = {text}")
        else:
            text, kind = _step(d, kind, random)
            lines.append(f"{name} = {name}{text}")
    for _ in range(d.whole(0, 3)):
        text, kind = _step(d, kind, random)
        lines.append(f"{name} = {name}{text}")
    if d.chance(0.2):
        lines = [
            "def dataset():",
            *indented([*lines, f"return {name}"]),
            f"show('elements', in_session(tf, dataset, {MOST}))",
        ]
    else:
        lines += [f"show('elements', elements({name}, {MOST}))"]
        if not _reads_ahead_by_chance("\n".join(lines)):
            lines += [f"show('again', elements({name}, {MOST}))"]
    return "\n".join(lines) + "\n"


def _reads_ahead_by_chance(program: str) -> bool:
    """Returns whether threads may have drawn seeds of elements that nobody asked for when the first iterator ends."""
    threads = re.search(r"prefetch\([1-9]|num_parallel_calls|parallel_interleave|map_and_batch", program)
    ends_early = re.search(r"take|repeat\((-1)?\)|zip|choose_from|sample_from", program)
    return bool(threads and ends_early and "shuffle" in program)


def _source(d: Drawer) -> str:
    kind = d.whole(0, 9)
    if kind < 6:
        ends = d.choose(
            [f"{d.whole(0, 12)}", f"{d.whole(0, 3)}, {d.whole(3, 15)}", f"{d.whole(8, 15)}, 0, -{d.whole(1, 3)}"]
        )
        return f"tf.data.Dataset.range({ends})"
    values = [d.whole(-9, 9) for _ in range(d.whole(1, 8))]
    if kind < 9:
        return f"tf.data.Dataset.from_tensor_slices(np.array({values}, np.int64))"
    return f"tf.data.Dataset.from_tensors(np.int64({values[0]}))"


def _seed(d: Drawer) -> str:
    return f"seed={d.whole(0, 99)}" if d.chance(0.8) else ""


def _step(d: Drawer, kind: str, random: bool) -> tuple[str, str]:
    """Returns a transformation, as text after the dataset's name, and what its elements are."""
    if random and d.chance(0.35):
        seed = _seed(d)
        again = d.choose(["", ", reshuffle_each_iteration=False", ", reshuffle_each_iteration=True"])
        return f".shuffle({d.whole(1, 12)}{', ' + seed if seed else ''}{again})", kind
    general = [
        f".take({d.whole(-1, 9)})",
        f".skip({d.whole(0, 4)})",
        f".repeat({d.choose(['', 1, 2, 3, 0, -1])})",
        ".cache()",
        f".prefetch({d.whole(0, 3)})",
        f".shard({d.choose([2, 3])}, {d.whole(0, 1)})",
    ]
    if d.chance(0.4):
        return d.choose(general), kind
    if kind == SCALAR:
        return _step_of_numbers(d)
    if kind == PAIR:
        text = d.choose([
            ".map(lambda x, y: x * 2 - y)", ".map(lambda x, y: tf.maximum(x, y))", ".filter(lambda x, y: x <= y + 2)",
        ])  # fmt: skip
        return text, PAIR if "filter" in text else SCALAR
    if kind == ROW and d.chance(0.5):
        return d.choose([(".unbatch()", SCALAR), (".map(lambda x: tf.reduce_sum(x))", SCALAR)])
    if kind == ANY:
        size = d.whole(1, 3)
        rest = d.choose(["[None]", "[9]"])
        filler = d.choose(["", f", padding_values=np.int64({d.whole(-9, 9)})"])
        drop = d.choose(["", ", drop_remainder=True"])
        if d.chance(0.6):
            return f".padded_batch({size}, padded_shapes={rest}{filler}{drop}).map(lambda x: tf.reshape(x, [-1]))", ANY
        return ".map(lambda x: tf.reduce_sum(x))", SCALAR
    return d.choose([
        (".map(lambda x: tf.reduce_sum(x))", SCALAR), (".map(lambda x: x * 2)", kind),
        (".filter(lambda x: tf.reduce_sum(x) % 3 > 0)", kind),
        (".flat_map(lambda x: tf.data.Dataset.from_tensor_slices(x))", SCALAR),
    ])  # fmt: skip


def _step_of_numbers(d: Drawer) -> tuple[str, str]:
    parallel = d.choose(["", "", f", num_parallel_calls={d.whole(1, 4)}"])
    count = f"x % {d.whole(1, 4)}"
    inner = d.choose([
        f"tf.data.Dataset.range({count})", f"tf.data.Dataset.from_tensors(x).repeat({count})",
        f"tf.data.Dataset.range(x, x + {d.whole(0, 4)})",
    ])  # fmt: skip
    endless = d.choose(["tf.data.Dataset.range(x, x + 1000)", "tf.data.Dataset.from_tensors(x).repeat(1000)"])
    size, drop = d.whole(1, 4), d.choose(["", ", drop_remainder=True"])
    shift = d.choose(["", f", shift={d.whole(1, 3)}"])
    stride = f", stride={d.whole(1, 2)}" if shift and d.chance(0.5) else ""
    return d.choose([
        (f".map(lambda x: x * {d.whole(-3, 3)} + {d.whole(-5, 5)}{parallel})", SCALAR),
        (f".map(lambda x: tf.where(x > {d.whole(0, 5)}, x, -x){parallel})", SCALAR),
        (f".filter(lambda x: x % {d.whole(2, 4)} > 0)", SCALAR),
        (f".batch({size}{drop})", ROW),
        (f".map(lambda x: tf.fill([tf.cast({count}, tf.int32)], x))", ANY),
        (f".flat_map(lambda x: {inner})", SCALAR),
        (f".interleave(lambda x: {inner}, cycle_length={d.whole(1, 4)}, block_length={d.whole(1, 3)}{parallel})", SCALAR),
        (f".window({size}{shift}{stride}{drop}).flat_map(lambda w: w)", SCALAR),
        (f".window({size}{shift}{stride}{drop}).flat_map(lambda w: w.batch({d.whole(1, 4)}))", ROW),
        (".map(lambda x: (x, x * x))", PAIR),
        (f".apply(tf.data.experimental.scan(np.int64({d.whole(-3, 3)}), lambda s, x: (s + x, s * 2 + x)))", SCALAR),
        (f".apply(tf.data.experimental.take_while(lambda x: x < {d.whole(2, 12)}))", SCALAR),
        (f".apply(tf.data.experimental.enumerate_dataset(start={d.whole(0, 3)}))", PAIR),
        (f".apply(tf.data.experimental.group_by_window(lambda x: x % {d.whole(1, 3)}, lambda k, w: w.batch({size}), {d.whole(1, 5)}))", ROW),
        (f".apply(tf.data.experimental.map_and_batch(lambda x: x + 1, {size}{drop}))", ROW),
        # Threads decide in TensorFlow what follows on the end of one of its datasets: here none ends.
        (f".apply(tf.data.experimental.parallel_interleave(lambda x: {endless}, cycle_length={d.whole(1, 3)}, block_length={d.whole(1, 2)}, sloppy=False))", SCALAR),
    ])  # fmt: skip


def _join(d: Drawer, name: str, others: list[str], random: bool) -> tuple[str, str]:
    other = d.choose(others)
    kinds = ["zip", "concatenate", "choose", "zip"] + (["sample"] * 3 if random else [])
    kind = d.choose(kinds)
    if kind == "zip":
        return f"tf.data.Dataset.zip(({name}, {other}))", PAIR
    if kind == "concatenate":
        return f"{name}.concatenate({other})", SCALAR
    listed = [name, *others][: d.whole(1, 3)]
    if kind == "choose":
        chosen = [d.whole(0, len(listed) - 1) for _ in range(d.whole(0, 9))]
        choice = f"tf.data.Dataset.from_tensor_slices(np.array({chosen}, np.int64))"
        return f"tf.data.experimental.choose_from_datasets([{', '.join(listed)}], {choice})", SCALAR
    weights = [d.choose([0.0, 0.25, 0.5, 1.0, 1.0, 2.5]) for _ in listed]
    given = f", weights={weights}" if d.chance(0.8) else ""
    seed = _seed(d)
    return (
        f"tf.data.experimental.sample_from_datasets([{', '.join(listed)}]{given}{', ' + seed if seed else ''})",
        SCALAR,
    )


FAMILY = Family(
    "pipelines",
    "pipelines of tf.data: elements and their order",
    draw,
    model="timberframe_conformance.fuzz.families.pipelines_model",
)
