"""A program with its graph, its expected results, and the results of its first run."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_conformance import drive
from timberframe_conformance.case import CaseFailedError
from timberframe_conformance.fuzz.build import Built, build
from timberframe_conformance.fuzz.expected import Expected, evaluate, expect, shown
from timberframe_conformance.fuzz.program import Program
from timberframe_conformance.target import needs_kernel
from timberframe_core.compiler.support import support
from timberframe_core.errors import NoKernelError, OpError, UnimplementedError
from timberframe_core.ops.definition import registry

if TYPE_CHECKING:
    from timberframe_conformance.target import Target


class InvalidProgramError(Exception):
    """The program is invalid: references, or the graph with constants in place of feeds, reject it."""


class FreshSessions:
    """Stands for a session in oracles that compare runs: each has a session of its own, whose streams begin."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __enter__(self) -> FreshSessions:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: nothing is open."""

    def run(self, *given: Any) -> Any:
        with self._make() as session:
            return session.run(*given)

    def explain(self, *given: Any) -> Any:
        with self._make() as session:
            return session.explain(*given)

    def make_callable(self, *given: Any) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            with self._make() as session:
                return session.make_callable(*given)(*values)

        return call


@dataclass
class Subject:
    """What oracles get. host: the host's target, if the device under test is another. rng: for their random choices."""

    program: Program
    target: Target
    host: Target | None = None
    seed: int = 0
    on_device: Counter[str] = field(default_factory=Counter)
    """After the first run: nodes that kernels of the device under test carried out, by op; those of bodies not."""

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @functools.cached_property
    def built(self) -> Built:
        """The graph. Raises CaseFailedError if only unknown shapes prevent building it, unless the error says so."""
        try:
            return build(self.program, self.target.spec)
        except OpError as e:
            if isinstance(e, UnimplementedError) and "must be known" in str(e):
                raise InvalidProgramError(str(e)) from e
            try:
                build(with_constants(self.program), self.target.spec)
            except OpError:
                raise InvalidProgramError(str(e)) from e
            raise CaseFailedError(f"with constants in place of feeds the graph is built, as it is: {_text(e)}") from e

    @functools.cached_property
    def expected(self) -> list[Expected | None]:
        """The expected value of each fetch."""
        built = self.built
        try:
            return expect(built.fetches, built.feeds, built.initializers, self.target.profile.flushes_subnormals)
        except Exception as e:  # NumPy's references may raise any exception
            raise InvalidProgramError(f"{type(e).__name__}: {e}") from e

    @functools.cached_property
    def first(self) -> list[np.ndarray]:
        """The results of the first run of a session."""
        try:
            with self.session() as session:
                found = list(self.run(session))
                self.on_device = self._count(session)
                return found
        except NoKernelError:
            raise  # whether the device may decline the node is another question than whether it does so again
        except OpError as e:
            try:  # references take wrong arguments that an op refuses
                build(with_constants(self.program), self.target.spec)
            except OpError:
                raise InvalidProgramError(str(e)) from e
            if self.refuses_alone(e, self.built, self.built.feeds, self.built.initializers):
                raise InvalidProgramError(str(e)) from e
            raise

    def _count(self, session: Any) -> Counter[str]:
        explain = getattr(session, "explain", None)
        if explain is None:
            return Counter()
        plan = explain(self.built.fetches, self.built.feeds)
        ops = {p.node: p.op for p in plan.placements}
        ran = (ops.get(name, "") for s in plan.stages if s.device == self.target.spec for name in s.nodes)
        return Counter(op for op in ran if (known := registry.find(op)) is not None and needs_kernel(known))

    def refuses_alone(
        self, error: OpError, built: Built, feeds: Mapping[Any, Any], initializers: Sequence[Any]
    ) -> bool:
        """Returns whether the node that an error names raises it by itself, for the inputs that references compute."""
        nodes = {op.name: op for op in built.graph.get_operations()}
        op = nodes.get(error.node or "")
        if op is None or op.op_def.stateful:
            return False
        inputs = evaluate(op.inputs, feeds, initializers)
        with np.errstate(all="ignore"):
            flat = [np.asarray(x).astype(t.dtype.base_dtype.numpy) for x, t in zip(inputs, op.inputs, strict=True)]
        given = iter(flat)
        lists = [[next(given) for _ in range(n)] for n in _lengths(op)]
        arrays = [x if a.is_list else x[0] for a, x in zip(op.op_def.inputs, lists, strict=True)]
        try:
            drive.call(self.target, op.op_def, op.attrs, arrays, known=False)
        except type(error):
            return True
        return False

    def may_decline(self, name: str | None) -> bool:
        """Returns whether the device says of a node, with its attrs, that it cannot run it, or
        that this depends on shapes.
        """
        op = next((op for op in self.built.graph.get_operations() if op.name == name), None)
        if op is None:
            return False
        return support(op, self.target.device) is not None

    def session(self, built: Built | None = None, **config: Any) -> Any:
        """Returns a session in which the variables have their first values; one for each run where
        runs draw random numbers.
        """
        made = functools.partial(self.plain_session, built, **config)
        return FreshSessions(made) if self.program.draws else made()

    def plain_session(self, built: Built | None = None, **config: Any) -> Any:
        """Returns a session in which the variables have their first values."""
        built = built or self.built
        session = self.target.session(built.graph, **{"allow_soft_placement": True, **config})
        if built.initializers:
            session.run(built.initializers)
        return session

    def run(
        self, session: Any, fetches: Any = None, feeds: Mapping[Any, Any] | None = None, built: Built | None = None
    ) -> Any:
        """Returns a run; variables that runs change get their first values before it."""
        built = built or self.built
        if self.program.has_updates:
            session.run(built.initializers)
        return session.run(built.fetches if fetches is None else fetches, built.feeds if feeds is None else feeds)

    def result(self, i: int) -> str:
        """Returns how messages name a result: by its number, op and dtype."""
        t = self.built.fetches[i]
        return f"result {i} ({t.op.type}, {t.dtype.base_dtype.name})"

    def check_same(self, got: Sequence[Any], what: str, wanted: Sequence[Any] | None = None) -> int:
        """Raises CaseFailedError unless all results are those of the first run, bit for bit; returns how many."""
        wanted = self.first if wanted is None else wanted
        if len(got) != len(wanted):
            raise CaseFailedError(f"{what} gives {len(got)} results; it must give {len(wanted)}")
        for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
            difference = bits_differ(g, w)
            if difference:
                raise CaseFailedError(f"{what}: {self.result(i)} differs from that of the first run: {difference}")
        return len(got)

    def check_close(self, got: Sequence[Any], what: str, indices: Sequence[int] | None = None) -> int:
        """Raises CaseFailedError where results are further from those of the first run than rounding explains."""
        count = 0
        for g, i in zip(got, range(len(self.first)) if indices is None else indices, strict=True):
            e = self.expected[i]
            if e is None:
                continue
            near = replace(e, value=_wide(self.first[i], e), determined=e.determined)
            if self.first[i].shape != e.value.shape:
                continue
            message = near.mismatch(g, 2.0)
            if message:
                raise CaseFailedError(f"{what}: {self.result(i)} differs from that of the first run: {message}")
            count += 1
        return count


def _lengths(op: Any) -> list[int]:
    """Returns how many tensors each declared input of a node has."""
    counts = []
    for arg in op.op_def.inputs:
        listed = op.attrs[arg.type_list_attr] if arg.type_list_attr else None
        counts.append(len(listed) if listed is not None else op.attrs[arg.number_attr] if arg.number_attr else 1)
    return counts


def _wide(x: np.ndarray, e: Expected) -> np.ndarray:
    return np.asarray(x).astype(e.value.dtype) if e.value.dtype != object else np.asarray(x, object)


def all_shapes_known(program: Program) -> Program:
    """Returns the same program with feeds of known shapes."""
    return replace(program, steps=tuple(_known(s, True) for s in program.steps))


def no_shapes_known(program: Program) -> Program:
    """Returns the same program with feeds of unknown rank."""
    return replace(program, steps=tuple(_known(s, False) for s in program.steps))


def with_constants(program: Program) -> Program:
    """Returns the same program with constants in place of feeds."""
    return replace(program, steps=tuple(replace(s, kind="const") if s.kind == "feed" else s for s in program.steps))


def _known(step: Any, known: bool) -> Any:
    return replace(step, known=step.value.shape if known else None) if step.kind == "feed" else step


def bits_differ(got: Any, wanted: Any) -> str:
    """Returns how two results differ; empty if they are equal bit for bit (any NaN equals any NaN)."""
    a, b = (np.asarray(x, object if isinstance(x, bytes | str) else None) for x in (got, wanted))
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    wrong = np.asarray(a != b, bool)
    if a.dtype.kind in "fcV":
        wrong &= ~((a != a) & (b != b))
        parts = ((a.real, b.real), (a.imag, b.imag)) if a.dtype.kind == "c" else ((a, b),)
        for x, y in parts:
            wrong |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    if not wrong.any():
        return ""
    at = int(np.argmax(wrong))
    return f"{int(wrong.sum())} of {wrong.size} elements, the first is {shown(a.flat[at])} and was {shown(b.flat[at])}"


def _text(e: Exception) -> str:
    return f"{type(e).__name__}: {e}"


Check = Callable[[Subject], int]
"""An oracle: raises CaseFailedError where something is wrong; returns how many results it compared."""

ORACLES: dict[str, Check] = {}


def oracle(name: str) -> Callable[[Check], Check]:
    """Adds an oracle."""

    def add(check: Check) -> Check:
        ORACLES[name] = check
        return check

    return add
