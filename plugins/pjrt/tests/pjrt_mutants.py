"""Plugins with known bugs: each takes its module of StableHLO for another one, or keeps what it must not keep.

Two are bugs of a translation: what it writes is not what the op is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend
import numpy as np
import pytest

from timberframe_pjrt import device
from timberframe_pjrt.translations import pooling
from timberframe_pjrt.translations.table import TABLE, Translation

Place = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A bug. op: the one that shows it. place: puts it where it is. suite: the one whose cases find it.

    says: a pattern of what the message of a failure must say, so that the cause is plain.
    """

    title: str
    op: str
    place: Place
    says: str
    suite: str = "forward"


class Altered:
    """A program of an altered module."""

    def __init__(self, text: str) -> None:
        host = jax.local_devices(backend="cpu")[0]
        options = jax.extend.backend.get_compile_options(num_replicas=1, num_partitions=1)
        self._program = host.client.compile_and_load(text, (host,), options)

    def __call__(self, *arrays: Any) -> list[Any]:
        made = self._program.execute_sharded(list(arrays)).disassemble_into_single_device_arrays()
        return [x[0] for x in made]

    def memory_analysis(self) -> None:
        """Says nothing."""


def reads(alter: Callable[[str], str]) -> Place:
    """Returns a plugin that compiles another module than it gets."""

    def place(patch: pytest.MonkeyPatch) -> None:
        own = device.compiled_of

        def compiled(lowered: Any) -> Any:
            text = lowered.as_text()
            altered = alter(text)
            return own(lowered) if altered == text else Altered(altered)

        patch.setattr(device, "compiled_of", compiled)

    return place


def rewritten(pattern: str, text: str | Callable[[re.Match[str]], str]) -> Place:
    """Returns a plugin that takes what a pattern finds for another text."""
    return reads(lambda module: re.sub(pattern, text, module))


def keeps_first(arguments: Sequence[int]) -> Place:
    """Returns a plugin that uploads these arguments of a program once."""

    def place(patch: pytest.MonkeyPatch) -> None:
        own = device.compiled_of

        def compiled(lowered: Any) -> Any:
            program, kept = own(lowered), {}

            def run(*arrays: Any) -> Any:
                return program(*(kept.setdefault(i, x) if i in arguments else x for i, x in enumerate(arrays)))

            run.memory_analysis = program.memory_analysis  # type: ignore[attr-defined]
            return run

        patch.setattr(device, "compiled_of", compiled)

    return place


def through(dtype: str, operation: str) -> Place:
    """Returns a plugin that rounds the first two operands of an operation to a dtype of fewer bits."""

    def rounded(found: re.Match[str]) -> str:
        line, name = found[0], found[1]
        operands = re.findall(r"%\w+", line.split("=", 1)[1])
        types = re.findall(r"tensor<[^>]*f32>", line)
        made = []
        for i, (operand, kind) in enumerate(zip(operands[:2], types, strict=False)):
            narrow = kind.replace("f32", dtype)
            made.append(f"%n{i}_{name} = stablehlo.convert {operand} : ({kind}) -> {narrow}")
            made.append(f"%w{i}_{name} = stablehlo.convert %n{i}_{name} : ({narrow}) -> {kind}")
            line = re.sub(rf"{operand}\b", f"%w{i}_{name}", line)
        return "\n".join([*made, line])

    return rewritten(rf"%(\w+) = stablehlo\.{operation} [^\n]*f32[^\n]*", rounded)


def without_check(op: str) -> Place:
    """Returns a translation that has XLA clamp indices."""

    def place(patch: pytest.MonkeyPatch) -> None:
        found = TABLE[op]
        patch.setitem(TABLE, op, Translation(found.function, found.types, found.suits))

    return place


def counts_padding(patch: pytest.MonkeyPatch) -> None:
    """A translation that divides by the whole window, whatever is padding of it."""
    patch.setattr(pooling, "_counts", lambda pool, size, out, dtype: np.asarray(np.prod(pool.window), dtype))


def drops_last(module: str) -> str:
    """Returns a sum without its last operand."""
    found = list(re.finditer(r"stablehlo\.add (%\w+), (%\w+) :", module))
    if not found:
        return module
    last = found[-1]
    return f"{module[: last.start()]}stablehlo.maximum {last[1]}, {last[1]} :{module[last.end() :]}"


def loses_nan(found: re.Match[str]) -> str:
    """Returns the larger one by a comparison, which is false for NaN."""
    name, a, b, kind = found.groups()
    truths = kind.replace("f32>", "i1>")
    return (
        f"%c_{name} = stablehlo.compare GT, {a}, {b}, FLOAT : ({kind}, {kind}) -> {truths}\n"
        f"%{name} = stablehlo.select %c_{name}, {a}, {b} : {truths}, {kind}"
    )


_OPERANDS = r"(%\w+), (%\w+)"
_PADDING = r"pad = \[\[(\d+), (\d+)\], \[(\d+), (\d+)\]\]"
_MAXIMUM = rf"%(\w+) = stablehlo\.maximum {_OPERANDS} : (tensor<\S*f32>)"
_EPSILON = r"dense<(9\.99999974E-4|0\.00100000005|1\.000000e-03)>"

MUTANTS = (
    Mutant("sub-exchanges", "Sub", rewritten(f"subtract {_OPERANDS}", r"subtract \2, \1"), "inputs 0 and 1 exchanged"),
    Mutant("sum-drops-last", "AddN", reads(drops_last), r"without input \d"),
    Mutant(
        "gather-clamps-indices", "GatherV2", without_check("GatherV2"),
        r"raised nothing; it must raise InvalidArgumentError with a message matching 'index", "errors",
    ),
    Mutant(
        "conv-swaps-padding", "Conv2D", rewritten(_PADDING, r"pad = [[\2, \1], [\4, \3]]"),
        "odd pixel on the other side",
    ),
    Mutant("average-counts-padding", "AvgPool", counts_padding, "padding that counts as zeros"),
    Mutant(
        "keeps-stale-weight", "MatMul", keeps_first([1]), "input 1 of the variable's version before", "prepared"
    ),
    Mutant("products-in-bfloat16", "MatMul", through("bf16", "dot_general"), "bfloat16"),
    Mutant("exp-in-half", "Exp", through("f16", "exponential"), "the result of inputs in TensorFloat-32"),
    Mutant("maximum-loses-nan", "Maximum", rewritten(_MAXIMUM, loses_nan), r"expected .*nan"),
    Mutant("batch-norm-own-epsilon", "FusedBatchNormV3", rewritten(_EPSILON, "dense<1.000000e-05>"), "epsilon"),
    Mutant(
        "select-exchanges", "SelectV2", rewritten(rf"select (%\w+), {_OPERANDS}", r"select \1, \3, \2"), "exchanged"
    ),
)  # fmt: skip
