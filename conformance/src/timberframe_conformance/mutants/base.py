"""What a mutant is: a kernel that replaces a device's own, correct except for one bug."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timberframe_conformance.tolerance.rounding import round_to
from timberframe_conformance.truth.reference import true_outputs
from timberframe_core.ops.definition import registry
from timberframe_core.plugin.contracts import KernelDef, KernelNode, Part
from timberframe_core.plugin.nodes import passed_inputs

VALUE_SUITES = frozenset(
    {
        "forward",
        "guards",
        "variants",
        "faults",
        "aliasing",
        "determinism",
        "concurrency",
        "graphs",
        "patterns",
        "prepared",
        "models",
        "errors",
        "gradient",
        "random",
    }
)
"""Suites whose cases check values, and so may fail besides those that must."""


class Call:
    """One launch of a mutant: inputs on the host, the true outputs, and where to write.

    attrs: the node's. inputs: all of them, those for planning included, in memory of their own; none where `copied` is
    false. passed, outputs: as the device gave them. device: the device. state: a dict that lives as long as the
    compiled kernel.
    """

    def __init__(self, node: KernelNode, arrays: Sequence[Any], state: dict[str, Any], *, copied: bool = True) -> None:
        self.node = node
        self.attrs = node.attrs
        self.device: Any = node.device
        self.state = state
        positions = passed_inputs(node)
        self.passed = list(arrays[: len(positions)])
        self.outputs = list(arrays[len(positions) : len(positions) + len(node.outputs)])
        given = dict(zip(positions, self.passed, strict=True))
        self.inputs = [
            self._host(given[i]) if i in given else np.asarray(node.const(i))
            for i in (range(len(node.inputs)) if copied else ())
        ]

    def _host(self, a: Any) -> np.ndarray:
        return a.copy() if isinstance(a, np.ndarray) else np.asarray(self.device.copy_out(a))

    @functools.cached_property
    def true(self) -> list[np.ndarray]:
        """The right outputs, in the outputs' dtypes."""
        return self.reference(*self.inputs)

    def reference(self, *inputs: np.ndarray, **attrs: Any) -> list[np.ndarray]:
        """Returns the op's outputs for other inputs or attrs."""
        found = true_outputs(registry.get(self.node.op), {**self.attrs, **attrs}, inputs)
        return [round_to(np.asarray(x), v.dtype) for x, v in zip(found, self.node.outputs, strict=True)]

    def write(self, i: int, value: Any) -> None:
        """Fills an output; the first elements of one whose size only the kernel knows."""
        target = self.outputs[i]
        array = np.asarray(value)
        if isinstance(target, np.ndarray):
            if self.node.outputs[i].dynamic:
                target.reshape(-1)[: array.size] = array.reshape(-1)
            else:
                target[...] = array
        else:
            self.device.copy(
                self.device.copy_in(np.ascontiguousarray(array.astype(target.dtype)).reshape(target.shape)), target
            )


Bug = Callable[..., Any]
"""Computes a Call with the bug: returns the outputs to write, or None when it wrote them itself."""


@dataclass(frozen=True)
class Mutant:
    """A known bug.

    op, types: what it is a kernel of; dtypes by type attr, all if empty. what: describes the bug. suites: those of
    which at least one case must notice. only: texts, one of which the id of each noticing case contains (any id if
    empty). verdict: what noticing looks like. isolate: it ends or stops the process, so it only runs in worker
    processes. through: ops whose gradients run the kernel. of_gradient: the bug is in the op's gradient function, and
    `bug` makes the wrong function from the correct one. covers: it is a kernel for these nodes, the last of which is of
    the op. of_seam: the bug is in what carries a device's part out, and `bug` gets Replacements and the Target; the op
    says what it is about. It is tried with all cases of its suites. soak: only level soak has what it needs, which
    takes minutes and gigabytes, so it is tried where it is asked for.
    """

    name: str
    op: str
    what: str
    bug: Bug
    suites: tuple[str, ...] = ("forward",)
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()
    only: tuple[str, ...] = ()
    also: frozenset[str] = VALUE_SUITES
    verdict: str = "fail"
    isolate: bool = False
    inplace: tuple[tuple[int, int], ...] = ()
    through: tuple[str, ...] = ()
    of_gradient: bool = False
    covers: tuple[Part, ...] = ()
    of_seam: bool = False
    soak: bool = False

    @property
    def of_kernel(self) -> bool:
        return not (self.of_gradient or self.of_seam)

    @property
    def subject(self) -> str:
        """The beginning of its description: the op that it is about."""
        return "" if self.of_seam else f"{self.op}: "

    @property
    def found_by(self) -> str:
        """The names of what must notice it, for lists."""
        return ", ".join(self.suites)

    def fits(self, device: str) -> bool:
        """Returns whether it can be planted where the device of this name was asked for; "" where none was."""
        return True

    def build(self, node: KernelNode) -> Callable[..., Any]:
        """Returns the builder of its kernel."""
        state: dict[str, Any] = {}
        BUILT.add(self.name)

        def launch(*arrays: Any) -> Any:
            call = Call(node, arrays, state, copied=not self.soak)
            with np.errstate(all="ignore"):  # NaN and infinities among the inputs are meant
                made = self.bug(call)
            if made is None:
                return None
            results = made if isinstance(made, list) else [made]
            for i, value in enumerate(results):
                call.write(i, value)
            dynamic = [np.shape(r) for r, v in zip(results, node.outputs, strict=True) if v.dynamic]
            return dynamic or None

        return launch


MUTANTS: dict[str, Mutant] = {}
MUTANT = "Mutant>"
"""How the names of mutants that run several nodes begin."""


def mutant(
    name: str, op: str, what: str, types: Sequence[str] | dict[str, Sequence[str]] = (), **rest: Any
) -> Callable[[Bug], Bug]:
    """Declares a function as a mutant. types: dtypes of the op's first type attr, or by attr."""

    def add(bug: Bug) -> Bug:
        by_attr = types if isinstance(types, dict) else ({first_type_attr(op): types} if types else {})
        chosen = tuple((a, tuple(t)) for a, t in by_attr.items())
        MUTANTS[name] = Mutant(name, op, what, bug, types=chosen, **rest)
        return bug

    return add


def seam_mutant(name: str, what: str, *suites: str, **rest: Any) -> Callable[[Bug], Bug]:
    """Declares a function as a mutant of a seam: it is called with Replacements and the Target."""
    return mutant(name, "", what, suites=suites, of_seam=True, also=frozenset(), **rest)


def first_type_attr(op: str) -> str:
    """Returns the name of the type attr that an op's first typed input has."""
    from timberframe_conformance.cases.types import type_attrs

    return type_attrs(registry.get(op))[0].name


class MutantKernel(KernelDef):
    """A mutant as a kernel, which is registered only while the mutant is active."""


BUILT: set[str] = set()
"""Names of mutants whose kernels a device of this process has built."""


def kernel_of(mutant: Mutant, device_type: str) -> MutantKernel:
    """Returns a mutant as a kernel of a device type, above its own."""
    op = f"{MUTANT}{mutant.name}" if mutant.covers else mutant.op
    types = dict(mutant.types)
    return MutantKernel(op, device_type, mutant.build, types, mutant.inplace, priority=1_000_000, covers=mutant.covers)
