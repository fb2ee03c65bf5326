"""Kernels of csrc/random: Philox streams, stateful and stateless."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_cpu.native import native
from timberframe_cpu.strings import with_strings
from timberframe_sdk import NUMERIC, KernelDef, KernelNode
from timberframe_sdk.native import Native
from timberframe_sdk.plans.streams import (
    SeedOrigin,
    StreamOrigin,
    bounded_batch,
    input_index,
    paired_indices,
    stream_origin,
)

_REALS = ("float16", "bfloat16", "float32", "float64")
_ROUNDED = ("float16", "float32", "float64")
_COUNTS = (*_ROUNDED, "int32", "int64")
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_ITEMS = (*(t.name for t in NUMERIC), "bool")
_STREAM, _SEEDS, _STATE = range(3)  # enum philox_origin
_LANES = 16

Builder = Callable[[KernelNode], Any]


def _origin(node: KernelNode) -> list[int]:
    """Returns the five parameters that say where the node's stream starts."""
    origin = stream_origin(node)
    if isinstance(origin, StreamOrigin):
        return [_STREAM, origin.stream.address, origin.key, origin.high, origin.blocks]
    if isinstance(origin, SeedOrigin):
        return [_SEEDS, origin.index, origin.dtype.itemsize, int(origin.dtype.kind == "i"), 0]
    return [_STATE, origin.index, 0, 0, 0]


def _kernel(name: str, node: KernelNode, *parameters: Any, reasons: tuple[str, ...] = ()) -> Native:
    from timberframe_ops.random.stateless_source import UNKNOWN_ALGORITHM

    return native(name, *_origin(node), *parameters, reasons=(UNKNOWN_ALGORITHM, *reasons))


def _filled(prefix: str) -> Builder:
    return lambda node: _kernel(f"{prefix}_{node.outputs[0].dtype.name}", node)


def _bits(node: KernelNode) -> Native:
    return _kernel(f"random_bits_{8 * node.outputs[0].dtype.itemsize}", node)


def _range(node: KernelNode) -> Native:
    from timberframe_ops.random.stateful import EMPTY_RANGE

    return _kernel(
        f"random_range_{node.outputs[0].dtype.name}", node, input_index(node, "minval"), reasons=(EMPTY_RANGE,)
    )


def _of_parameter(name: str, parameter: str) -> Builder:
    return lambda node: _kernel(name, node, input_index(node, parameter))


def _binomial(node: KernelNode) -> Native:
    pairs = paired_indices(node.inputs[2].shape, node.inputs[3].shape)
    return _kernel("random_binomial", node, input_index(node, "counts"), len(pairs), *pairs.reshape(-1).tolist())


def _bounded(node: KernelNode) -> Native:
    from timberframe_ops.random.rejection_draws import INVALID_BOUNDS, NOTHING_ACCEPTED

    output = node.outputs[0]
    name, reasons = f"random_bounded_{output.dtype.name}", (INVALID_BOUNDS, NOTHING_ACCEPTED)
    return _kernel(name, node, input_index(node, "means"), bounded_batch(node), 1, 0, reasons=reasons)


def _bounded_pairs(node: KernelNode) -> Native:
    from timberframe_ops.random.rejection_draws import INVALID_BOUNDS, NOTHING_ACCEPTED

    output = node.outputs[0]
    rows = paired_indices(*(v.shape for v in node.inputs[2:]))
    batch = max(1, output.size // max(1, len(rows)))
    name, reasons = f"random_bounded_{output.dtype.name}", (INVALID_BOUNDS, NOTHING_ACCEPTED)
    given = input_index(node, "means"), batch, len(rows), 1, *rows.reshape(-1).tolist()
    return _kernel(name, node, *given, reasons=reasons)


def _categories(node: KernelNode) -> Native:
    rows, classes = node.inputs[0].shape
    lanes = max(1, min(rows, _LANES))
    node.workspace(lanes * classes * 8)
    return _kernel("random_categories", node, rows, classes, node.outputs[0].shape[1], lanes)


@with_strings
def _shuffle(node: KernelNode) -> Native:
    value = node.inputs[0]
    rows = value.shape[0] if value.shape and value.size > 1 else 1
    item = value.dtype.itemsize if len(value.shape) == 1 else 0
    if not item:
        node.workspace(8 * rows)
    return _kernel("random_shuffle", node, rows, value.nbytes // max(1, rows), item)


def _key_counter(node: KernelNode) -> Native:
    return _kernel("random_key_counter", node, len(node.outputs))


def _both(name: str, build: Builder, types: dict[str, tuple[str, ...]]) -> list[KernelDef]:
    """Returns the kernels of a stateless op, by seeds and by key and counter."""
    return [KernelDef(f"Stateless{name}{suffix}", "CPU", build, types) for suffix in ("", "V2")]


_DTYPE: dict[str, tuple[str, ...]] = {"dtype": _REALS}
_LOGITS = {"T": _REALS}
_SHUFFLED = {"T": (*_ITEMS, "string")}

KERNELS = [
    KernelDef("RandomUniform", "CPU", _filled("random_uniform"), _DTYPE),
    KernelDef("RandomStandardNormal", "CPU", _filled("random_normal"), _DTYPE),
    KernelDef("TruncatedNormal", "CPU", _filled("random_truncated"), _DTYPE),
    KernelDef("RandomUniformInt", "CPU", _range, {"Tout": ("int32", "int64")}),
    KernelDef("RandomShuffle", "CPU", _shuffle, _SHUFFLED),
    KernelDef("Multinomial", "CPU", _categories, _LOGITS),
    KernelDef("RandomGamma", "CPU", _of_parameter("random_gamma", "alpha"), {"T": _ROUNDED}),
    KernelDef("RandomPoissonV2", "CPU", _of_parameter("random_poisson", "rate"), {"R": _COUNTS, "dtype": _COUNTS}),
    KernelDef("RandomPoisson", "CPU", _of_parameter("random_poisson", "rate"), {"dtype": _ROUNDED}),
    KernelDef("ParameterizedTruncatedNormal", "CPU", _bounded, {"dtype": _ROUNDED}),
    *_both("RandomUniform", _filled("random_uniform"), _DTYPE),
    *_both("RandomNormal", _filled("random_normal"), _DTYPE),
    *_both("TruncatedNormal", _filled("random_truncated"), _DTYPE),
    *_both("RandomUniformInt", _range, {"dtype": _INTEGERS}),
    *_both("RandomUniformFullInt", _bits, {"dtype": _INTEGERS}),
    KernelDef("StatelessMultinomial", "CPU", _categories, _LOGITS),
    KernelDef("StatelessShuffle", "CPU", _shuffle, _SHUFFLED),
    KernelDef("StatelessRandomGammaV2", "CPU", _of_parameter("random_gamma", "alpha"), {"dtype": _ROUNDED}),
    KernelDef("StatelessRandomGammaV3", "CPU", _of_parameter("random_gamma", "alpha"), {"dtype": _ROUNDED}),
    KernelDef(
        "StatelessRandomPoisson", "CPU", _of_parameter("random_poisson", "lam"), {"Rtype": _COUNTS, "dtype": _COUNTS}
    ),
    KernelDef("StatelessRandomBinomial", "CPU", _binomial, {"T": _ROUNDED, "dtype": _COUNTS}),
    KernelDef("StatelessParameterizedTruncatedNormal", "CPU", _bounded_pairs, {"dtype": _ROUNDED}),
    KernelDef("StatelessRandomGetKeyCounter", "CPU", _key_counter),
    KernelDef("StatelessRandomGetKeyCounterAlg", "CPU", _key_counter),
    KernelDef("StatelessRandomGetAlg", "CPU", lambda node: native("random_algorithm")),
]
