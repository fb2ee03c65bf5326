"""Mutants of strangers, and how they are planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from timberframe_conformance.mutants.base import MUTANT, MUTANTS, Bug, Call, Mutant, MutantKernel
from timberframe_conformance.mutants.strangers.hosts import HOSTS, Host
from timberframe_conformance.mutants.strangers.rule import PARTS, highest, level_of_bug
from timberframe_conformance.replacements import Replacements
from timberframe_conformance.target import Target
from timberframe_core.plugin.contracts import KernelNode, Part

PLUGIN = "conformance-strangers"
REPORT = "a vendor's report, bug {}"
"""Of a vendor who tried the suite with bugs of its own."""
READER = "a reader of the guides"
"""Source of bugs that were planted by somebody who had not seen the suite."""


@dataclass(frozen=True)
class Stranger(Mutant):
    """A mutant after somebody's report.

    source: the report. host: the device that it is planted into. attrs, example: what it is limited to, see
    `level_of_bug`. concerns: the part of the device, where it is about no op.
    """

    source: str = ""
    host: str = "npu"
    attrs: Mapping[str, Any] = field(default_factory=dict)
    example: Sequence[Any] | None = None
    concerns: str = ""

    @property
    def level(self) -> str:
        """The level at which the suite must notice it."""
        if self.concerns:
            return PARTS[self.concerns]
        types = {name: dtypes[0] for name, dtypes in self.types if len(dtypes) == 1}
        if not self.covers:
            return level_of_bug(self.op, types, self.attrs, self.example)
        return highest([level_of_bug(part.op, types, {}) for part in self.covers])

    @property
    def subject(self) -> str:
        return f"{self.op}: " if self.op else ""

    @property
    def found_by(self) -> str:
        return f"level {self.level}, {HOSTS[self.host].type}; {self.source}"

    def fits(self, device: str) -> bool:
        """It has its own device, so it is left out where another was asked for."""
        return device.lower() in ("", HOSTS[self.host].type)

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops whose cases may notice it; none: all."""
        return tuple(p.op for p in self.covers) or ((self.op,) if self.op else ())

    def build(self, node: KernelNode) -> Callable[..., Any]:
        """Returns the builder of its kernel: the bug computes in the device's queue, on
        elements of the device's memory.
        """
        state: dict[str, Any] = {}
        device: Any = node.device

        def compute(*arrays: Any) -> None:
            if all(v.size == 0 for v in node.outputs):
                return
            call = Call(node, arrays, state)
            made = self._wrong(call)
            if made is not None:
                for i, value in enumerate(made if isinstance(made, list) else [made]):
                    call.write(i, value)

        return lambda *tensors: device.queue.launch(compute, *tensors)

    def _wrong(self, call: Call) -> Any:
        """Calls the bug and returns its result; an exception that it does not mean to raise is marked as such."""
        try:
            return self.bug(call)
        except (IndexError, KeyError, TypeError, AttributeError, NameError) as e:
            raise AssertionError(f"{BROKEN} {self.name}: {type(e).__name__}: {e}") from e

    @contextmanager
    def planted(self) -> Iterator[Target]:
        """The host with the bug within the block."""
        host = HOSTS[self.host]
        if self.of_seam:
            yield from self._in_the_driver(host)
            return
        target = host.open()
        op = f"{MUTANT}{self.name}" if self.covers else self.op
        types = dict(self.types)
        kernel = MutantKernel(
            op, target.device.type, self.build, types, self.inplace, priority=1_000_000, covers=self.covers
        )
        registry: Any = target.device
        registry.kernels.register([kernel], PLUGIN)
        target.forget()
        try:
            yield target
        finally:
            registry.kernels.unregister(PLUGIN)
            target.forget()

    def _in_the_driver(self, host: Host) -> Iterator[Target]:
        """Yields the host whose driver or kernels have the bug from the beginning."""
        host.close()
        with Replacements() as replacements:
            self.bug(replacements, host)
            try:
                yield host.open()
            finally:
                host.close()


def _declare(mutant: Stranger) -> None:
    if mutant.name in MUTANTS:
        raise ValueError(f"mutant {mutant.name}: there is another one; a name of its own is required")
    MUTANTS[mutant.name] = mutant


BROKEN = "broken mutant"
"""The beginning of the message of an exception that a bug does not mean to raise."""


def stranger(
    name: str,
    op: str,
    what: str,
    source: str,
    types: Mapping[str, Sequence[str]] | None = None,
    covers: tuple[Part, ...] = (),
    **rest: Any,
) -> Callable[[Bug], Bug]:
    """Declares a function on a Call as the kernel of an op. types: dtypes by attr, float32 for T if not given."""

    def add(bug: Bug) -> Bug:
        chosen = tuple((a, tuple(t)) for a, t in (types or {"T": ("float32",)}).items())
        _declare(Stranger(name, op, what, bug, types=chosen, source=source, covers=covers, **rest))
        return bug

    return add


def planted(name: str, what: str, source: str, concerns: str = "", op: str = "", **rest: Any) -> Callable[[Bug], Bug]:
    """Declares a function as a bug of a driver or of its kernels: it is called with Replacements and the Host.

    concerns: the part of the device; op: in place of that, the op whose kernel has the bug.
    """

    def add(bug: Bug) -> Bug:
        types = (("T", ("float32",)),) if op and "types" not in rest else rest.pop("types", ())
        _declare(Stranger(name, op, what, bug, types=types, source=source, of_seam=True, concerns=concerns, **rest))
        return bug

    return add
