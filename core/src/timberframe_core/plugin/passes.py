"""Passes as data: what rewrites programs and clusters before devices compile them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from timberframe_core.errors import InvalidArgumentError

PHASES = ("graph", "fed_graph", "program", "placed", "cluster")
"""When a pass runs. `graph`: on the operations of a graph that a run or a function needs, as they were made.
`fed_graph`: on those of a run, once for each set of shapes that is fed. `program`: on the nodes that are made of the
operations, calls being inlined, of a run or of a body, before they have devices; shapes are the static ones. `placed`:
on the same when each node has its device. `cluster`: on what one device is to compile, all shapes being known."""

GRAPH_PHASES = frozenset({"graph", "fed_graph"})
"""Phases in which the pass sees the user's graph: an OpError is the graph's own, and is raised."""


@dataclass(frozen=True)
class Pass:
    """A rewrite that makes runs faster and changes no result.

    name: the switch in `SessionConfig.optimizations`, and what `Session.explain` calls it. phase: one of PHASES. run:
    looks at what a Rewriter gives it and records changes there; they are made when it has returned, and none is where
    it raises, so that a pass that fails is left out. doc: what it does, in a sentence. after: names of passes of its
    phase that run before it, and before: of those that run after it, if they are there.
    """

    name: str
    phase: str
    run: Callable[[Any], None]
    doc: str
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


class PassRegistry:
    """The passes of the core and of plugins, in the order in which they run."""

    def __init__(self) -> None:
        self._owners: dict[Pass, str] = {}
        self._lock = threading.Lock()

    def register(self, passes: Iterable[Pass], plugin: str = "") -> None:
        """Adds passes, of a plugin or ("") of the core: all, or none and InvalidArgumentError says which is wrong."""
        with self._lock:
            owners = dict(self._owners)
            for new in passes:
                _check(new, owners)
                owners[new] = plugin
            self._owners = {p: owners[p] for p in _ordered(owners)}

    def unregister(self, plugin: str) -> None:
        """Takes the passes of a plugin out."""
        with self._lock:
            self._owners = {p: owner for p, owner in self._owners.items() if owner != plugin}

    @contextmanager
    def registered(self, passes: Iterable[Pass], plugin: str) -> Iterator[None]:
        """Registers a plugin's passes, and takes them back where what is done inside raises."""
        own = tuple(passes)
        self.register(own, plugin)
        try:
            yield
        except BaseException:
            self.take_out(own)
            raise

    def take_out(self, passes: Collection[Pass]) -> None:
        """Takes these passes out; others may have been registered meanwhile."""
        with self._lock:
            self._owners = {p: owner for p, owner in self._owners.items() if p not in passes}

    def selected(self, plugins: Collection[str], switches: Mapping[str, bool]) -> list[Pass]:
        """Returns the passes of the core and of these plugins that are not switched off, in order.

        InvalidArgumentError for a switch of no pass.
        """
        known = [p for p, owner in self._owners.items() if not owner or owner in plugins]
        unknown = sorted(switches.keys() - {p.name for p in known})
        if unknown:
            raise InvalidArgumentError(
                f"SessionConfig.optimizations names {', '.join(map(repr, unknown))}; "
                f"known are {', '.join(sorted(p.name for p in known))}"
            )
        return [p for p in known if switches.get(p.name, True)]


@contextmanager
def with_passes(registry: PassRegistry, passes: Iterable[Pass]) -> Iterator[None]:
    """Within the block sessions that are made have these passes, too, whatever plugins they have.

    So conformance judges what becomes of passes that fail. No new device is made for it.
    """
    own = tuple(passes)
    registry.register(own)
    try:
        yield
    finally:
        registry.take_out(own)


def _check(new: Pass, known: Collection[Pass]) -> None:
    if not isinstance(new, Pass):
        raise InvalidArgumentError(f"pass {new!r}: is a {type(new).__name__}; a Pass is required")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", new.name):
        raise InvalidArgumentError(f"pass {new.name!r}: its name must be of lower-case letters, digits and _")
    if new.phase not in PHASES:
        raise InvalidArgumentError(f"pass '{new.name}': phase is {new.phase!r}; one of {', '.join(PHASES)} is required")
    if any(p.name == new.name for p in known):
        raise InvalidArgumentError(f"pass '{new.name}': there is one of this name; names must differ")


def _ordered(passes: Collection[Pass]) -> list[Pass]:
    """Phase by phase, as `after` and `before` say, and otherwise in the order of registration."""
    ordered: list[Pass] = []
    waiting = sorted(passes, key=lambda p: PHASES.index(p.phase))
    while waiting:
        ready = next((p for p in waiting if not any(_follows(p, other) for other in waiting)), None)
        if ready is None:
            circle = ", ".join(f"'{p.name}'" for p in waiting if p.after or p.before)
            raise InvalidArgumentError(f"passes {circle}: each waits for another; an order without circles is required")
        ordered.append(ready)
        waiting.remove(ready)
    return ordered


def _follows(p: Pass, other: Pass) -> bool:
    return p.phase == other.phase and (other.name in p.after or p.name in other.before)
