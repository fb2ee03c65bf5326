"""Accelerator kernels of random ops: Philox streams, stateful and stateless, with the numbers of every device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timberframe_accelerator.device import DTYPES
from timberframe_accelerator.kernels.indexing import bits_name
from timberframe_accelerator.kernels.rows import row_lanes
from timberframe_accelerator.launches import GROUP, Source, failing, index_name, index_type, needs_float64, spread
from timberframe_core.ops.definition import registry
from timberframe_ops.random.rejection_draws import INVALID_BOUNDS, NOTHING_ACCEPTED
from timberframe_ops.random.stateful import EMPTY_RANGE
from timberframe_ops.random.stateless_source import UNKNOWN_ALGORITHM
from timberframe_sdk import (
    DEPENDS,
    InternalError,
    InvalidArgumentError,
    KernelDef,
    KernelNode,
    Launcher,
    Support,
    passed_inputs,
)
from timberframe_sdk.plans.streams import (
    SeedOrigin,
    StreamOrigin,
    bounded_batch,
    input_index,
    paired_indices,
    stream_origin,
)

Builder = Callable[[KernelNode], Launcher]
_ALGORITHM = InvalidArgumentError, UNKNOWN_ALGORITHM
_RANGE = InvalidArgumentError, EMPTY_RANGE
_BOUNDS = (InvalidArgumentError, INVALID_BOUNDS), (InternalError, NOTHING_ACCEPTED)
_MOST_STREAMS = 1 << 18  # work-items that open a generator: of seeds that costs as much as a block
_MOST_SUMS = 1 << 26  # bytes of running sums that are held at a time
_EXCHANGES = "draw_partners", "list_exchanges", "follow_exchanges"
"""The kernels that make the order of a shuffle."""
_SHUFFLE_TABLES = 4 * 4  # bytes for each row: the order, and the three tables that it is made of
_MOST_GROUPS = 1 << 14  # that add up rows; each takes several of more rows
_LARGE_BATCH = 64  # numbers between bounds that a group draws, not one work-item
_ONE_GROUP = (GROUP,), (GROUP,)  # or one work-item of it, which does it all


class _Stream:
    """The arguments that say where a node's numbers start, and the macros that go with them."""

    def __init__(self, node: KernelNode) -> None:
        self.origin = stream_origin(node)
        self.node = node.number
        self.passed = len(passed_inputs(node))
        kind, seeds = "STATE", "uint64"
        if isinstance(self.origin, StreamOrigin):
            kind = "STREAM"
        elif isinstance(self.origin, SeedOrigin):
            kind, seeds = "SEEDS", self.origin.dtype.name
        self.macros = {"ORIGIN": kind, "TSEED": seeds}

    def arguments(self, arrays: Sequence[Any]) -> list[Any]:
        """TF_ORIGIN of random_origin.h for one launch; a stateful stream moves on.

        The last array is the status; of an op that cannot fail it may be any array, which is not used.
        """
        origin, status = self.origin, arrays[-1]
        key = low = high = 0
        tensors = [status, status, status]
        if isinstance(origin, StreamOrigin):
            key, low, high = origin.key, origin.stream.reserve(origin.blocks), origin.high
        elif isinstance(origin, SeedOrigin):
            tensors[0] = arrays[origin.index]
        else:
            tensors = list(arrays[origin.index : origin.index + 3])
        words = [np.uint64(word % 2**64) for word in (key, low, high)]
        return [*tensors, status, self.node, *words]


def _filled(draw: str) -> Builder:
    """Builders of the ops that fill a shape, each block of numbers on its own."""

    def build(node: KernelNode) -> Launcher:
        device: Any = node.device
        out, stream = node.outputs[0], _Stream(node)
        wide, index = int(out.dtype.itemsize == 8), index_type(out.size)
        dtype = bits_name(out.dtype) if draw == "BITS" else out.dtype.name
        macros = {"T": dtype, "U": bits_name(out.dtype), "DRAW": draw, "INDEX": index_name(out.size)}
        name = "tf_fill_range" if draw == "RANGE" else "tf_fill"
        function = device.function(Source.file("random_fill.h", WIDE=wide, **macros, **stream.macros), name)
        blocks = -(-out.size // (2 if wide else 4))
        items, group = spread(min(blocks, _MOST_STREAMS))
        least = input_index(node, "minval") if draw == "RANGE" else 0
        limits = slice(least, least + 2 if draw == "RANGE" else 0)

        def launch(*arrays: Any) -> None:
            opened = stream.arguments(arrays)
            if out.size:
                function(items, group, *opened, *arrays[limits], arrays[stream.passed], index(out.size), index(blocks))

        return failing(launch, _ALGORITHM, _RANGE)

    return build


def _rejected(number: str, parameter: str) -> Builder:
    """Builders of the ops that draw by rejection, each number from blocks of its own."""

    def build(node: KernelNode) -> Launcher:
        device: Any = node.device
        out, stream = node.outputs[0], _Stream(node)
        first = input_index(node, parameter)
        given, index = node.inputs[passed_inputs(node)[first]], index_type(out.size)
        macros = {"T": given.dtype.name, "TOUT": out.dtype.name, "NUMBER": number, "INDEX": index_name(out.size)}
        function = device.function(Source.file("random_rejection.h", **macros, **stream.macros), "tf_reject")
        sizes = [index(n) for n in (out.size, given.size, out.size // max(1, given.size))]
        items, group = spread(out.size)

        def launch(*arrays: Any) -> None:
            opened = stream.arguments(arrays)
            if out.size:
                function(items, group, *opened, arrays[first], arrays[stream.passed], *sizes)

        return failing(launch, _ALGORITHM)

    return build


def binomial(node: KernelNode) -> Launcher:
    """Binomial numbers for each pair of a count and a probability."""
    device: Any = node.device
    out, stream, first = node.outputs[0], _Stream(node), input_index(node, "counts")
    counts, probs, index = node.inputs[2], node.inputs[3], index_type(out.size)
    pairs = paired_indices(counts.shape, probs.shape)
    macros = {"T": counts.dtype.name, "TOUT": out.dtype.name, "NUMBER": "binomial_number"}
    source = Source.file("random_rejection.h", INDEX=index_name(out.size), **macros, **stream.macros)
    function = device.function(source, "tf_reject_pairs")
    table = device.table(pairs.astype(np.int64))
    sizes = [index(n) for n in (out.size, len(pairs), out.size // max(1, len(pairs)))]
    items, group = spread(out.size)

    def launch(*arrays: Any) -> None:
        opened = stream.arguments(arrays)
        if out.size:
            function(items, group, *opened, *arrays[first : first + 2], table, arrays[stream.passed], *sizes)

    return failing(launch, _ALGORITHM)


def bounded(node: KernelNode) -> Launcher:
    """Truncated normals with parameters of their own for each batch, one batch after the other."""
    device: Any = node.device
    out, stream, first = node.outputs[0], _Stream(node), input_index(node, "means")
    parameters = node.inputs[-4:]
    if isinstance(stream.origin, StreamOrigin):
        batch = start = bounded_batch(node)
        step, rows = 1, -(-out.size // batch)
        indices = np.stack([np.arange(rows) % max(1, p.size) for p in parameters], -1)
    else:
        indices = paired_indices(*(p.shape for p in parameters))
        batch, start, step = max(1, out.size // max(1, len(indices))), 1, len(indices)
    each = {"EACH": 1} if batch < _LARGE_BATCH or device.limits.reduction_group_size < GROUP else {}
    source = Source.file("random_bounded.h", T=out.dtype.name, **each, **stream.macros)
    function = device.function(source, "tf_fill_bounded")
    table = device.table(indices.astype(np.int64))
    sizes = [np.int64(n) for n in (out.size, batch, start, step)]

    def launch(*arrays: Any) -> None:
        table.upload()  # which may fail, and then the stream must not have moved on
        opened = stream.arguments(arrays)
        if out.size:
            function(*_ONE_GROUP, *opened, *arrays[first : first + 4], table, arrays[stream.passed], *sizes)

    return failing(launch, _ALGORITHM, *_BOUNDS)


def categories(node: KernelNode) -> Launcher:
    """Categories by their logits: running sums of some rows at a time, in which each sample is looked up."""
    device: Any = node.device
    logits, out, stream = node.inputs[0], node.outputs[0], _Stream(node)
    rows, classes = logits.shape
    samples, index = out.shape[1], index_type(logits.size, out.size)
    held = max(1, min(rows, _MOST_SUMS // (8 * max(1, classes))))
    node.workspace(8 * max(1, held * classes))
    lanes = row_lanes(device, classes)
    each = {"EACH": 1} if lanes == 1 or device.limits.reduction_group_size < GROUP else {}
    macros = {"T": logits.dtype.name, "TOUT": out.dtype.name, "INDEX": index_name(logits.size, out.size)}
    source = Source.file("random_categories.h", **each, **macros, **stream.macros)
    add, find = device.function(source, "tf_running_sums"), device.function(source, "tf_categories")

    def launch(*arrays: Any) -> None:
        opened = stream.arguments(arrays)
        target, sums = arrays[stream.passed : stream.passed + 2]
        for first in range(0, rows if out.size else 0, held):
            count = min(held, rows - first)
            work = spread(count) if each else ((min(count, _MOST_GROUPS) * lanes,), (lanes,))
            add(*work, arrays[0], sums, index(first), index(count), index(classes))
            sizes = [index(n) for n in (first * samples, count * samples, classes, samples)]
            find(*spread(count * samples), *opened, sums, target, *sizes)

    return failing(launch, _ALGORITHM)


def shuffle(node: KernelNode) -> Launcher:
    """Returns rows in a random order: the exchanges that make it are drawn, listed by their partners, and followed."""
    device: Any = node.device
    value, stream = node.inputs[0], _Stream(node)
    rows = value.shape[0] if value.shape and value.size > 1 else 1
    node.workspace(_SHUFFLE_TABLES * rows)
    source = Source.file("random_discrete.h", **stream.macros)
    draw, link, follow = (device.function(source, f"tf_{name}") for name in _EXCHANGES)
    rest = Source.file("random_rows.h", T=bits_name(value.dtype), INDEX=index_name(value.size))
    order_rows = device.function(rest, "tf_order_rows")
    index, count = index_type(value.size), np.int32(rows)
    size, inner = index(value.size), index(value.size // max(1, rows))
    items, group = spread(value.size)

    def launch(*arrays: Any) -> None:
        opened = stream.arguments(arrays)
        out, order = arrays[stream.passed : stream.passed + 2]
        if rows > 1:
            draw(*spread(min(rows, _MOST_STREAMS)), *opened, order, count)
            link(*spread(rows), order, count)
            follow(*spread(rows), order, count)
            order_rows(items, group, arrays[0], order, out, size, inner)
        elif value.size:
            device.copy(arrays[0], out)

    return failing(launch, _ALGORITHM)


def few_rows(node: KernelNode) -> Support:
    """`suits` of a shuffle, whose tables hold int32."""
    rows = node.inputs[0].shape[0] if node.inputs[0].shape else 1
    if rows < 0:
        return DEPENDS
    return None if rows < 2**31 else f"it shuffles fewer than {2**31} rows; there are {rows}"


def key_counter(node: KernelNode) -> Launcher:
    """Returns the key and the counter that a pair of seeds stands for, and the algorithm's
    number where it is asked for.
    """
    device: Any = node.device
    stream = _Stream(node)
    function = device.function(Source.file("random_discrete.h", **stream.macros), "tf_key_counter")
    count = len(node.outputs)

    def launch(*arrays: Any) -> None:
        key, counter, *rest = arrays[stream.passed : stream.passed + count]
        function(*_ONE_GROUP, *stream.arguments(arrays), key, counter, *(rest or [counter]), np.int32(len(rest)))

    return failing(launch, _ALGORITHM)


def algorithm(node: KernelNode) -> Launcher:
    """Returns the number of Philox, which is the only algorithm."""
    device: Any = node.device
    number = device.table(np.array(1, np.int32))
    return lambda out: device.copy(number, out)


_REALS = ("float16", "bfloat16", "float32", "float64")
_ROUNDED = ("float16", "float32", "float64")
_COUNTS = (*_ROUNDED, "int32", "int64")
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_DTYPE, _LOGITS, _ITEMS = {"dtype": _REALS}, {"T": _REALS}, {"T": DTYPES}
_GAMMA = _rejected("gamma_number", "alpha")
_POISSON = _rejected("poisson_number", "rate")
_STATELESS_POISSON = _rejected("poisson_number", "lam")
_IN_FLOAT64 = (_GAMMA, _POISSON, _STATELESS_POISSON, binomial, categories)
_SUITS: dict[Builder, Callable[[KernelNode], Support]] = {
    **dict.fromkeys(_IN_FLOAT64, needs_float64),
    shuffle: few_rows,
}


def _stateless(name: str, build: Builder, types: tuple[str, ...]) -> dict[str, tuple[Builder, Any]]:
    """Returns the builder of a stateless op, by seeds and by key and counter."""
    return {f"Stateless{name}{suffix}": (build, {"dtype": types}) for suffix in ("", "V2")}


_BUILDERS: dict[str, tuple[Builder, Any]] = {
    "RandomUniform": (_filled("UNIFORM"), _DTYPE),
    "RandomStandardNormal": (_filled("NORMAL"), _DTYPE),
    "TruncatedNormal": (_filled("TRUNCATED"), _DTYPE),
    "RandomUniformInt": (_filled("RANGE"), {"Tout": ("int32", "int64")}),
    "RandomShuffle": (shuffle, _ITEMS),
    "Multinomial": (categories, _LOGITS),
    "RandomGamma": (_GAMMA, {"T": _ROUNDED}),
    "RandomPoissonV2": (_POISSON, {"R": _COUNTS, "dtype": _COUNTS}),
    "RandomPoisson": (_POISSON, {"dtype": _ROUNDED}),
    "ParameterizedTruncatedNormal": (bounded, {"dtype": _ROUNDED}),
    **_stateless("RandomUniform", _filled("UNIFORM"), _REALS),
    **_stateless("RandomNormal", _filled("NORMAL"), _REALS),
    **_stateless("TruncatedNormal", _filled("TRUNCATED"), _REALS),
    **_stateless("RandomUniformInt", _filled("RANGE"), _INTEGERS),
    **_stateless("RandomUniformFullInt", _filled("BITS"), _INTEGERS),
    "StatelessMultinomial": (categories, _LOGITS),
    "StatelessShuffle": (shuffle, _ITEMS),
    "StatelessRandomGammaV2": (_GAMMA, {"dtype": _ROUNDED}),
    "StatelessRandomGammaV3": (_GAMMA, {"dtype": _ROUNDED}),
    "StatelessRandomPoisson": (_STATELESS_POISSON, {"Rtype": _COUNTS, "dtype": _COUNTS}),
    "StatelessRandomBinomial": (binomial, {"T": _ROUNDED, "dtype": _COUNTS}),
    "StatelessParameterizedTruncatedNormal": (bounded, {"dtype": _ROUNDED}),
    "StatelessRandomGetKeyCounter": (key_counter, {}),
    "StatelessRandomGetKeyCounterAlg": (key_counter, {}),
}


def _can_fail(op: str) -> bool:
    """Returns whether an op has bounds or the number of an algorithm that may be wrong."""
    return any(a.name in ("minval", "minvals", "alg") for a in registry.get(op).inputs)


KERNELS = [
    *(
        KernelDef(op, "", build, types, status=_can_fail(op), suits=_SUITS.get(build))
        for op, (build, types) in _BUILDERS.items()
    ),
    KernelDef("StatelessRandomGetAlg", "", algorithm),
]
