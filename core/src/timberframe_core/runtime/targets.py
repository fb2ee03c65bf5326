"""Targets: what a session runs on. The session, its plans and its executor stay in this process, wherever devices are.

A target is found by its URL, such as "process:2": what comes before the colon is the scheme, by which packages register
targets, the rest is for the target to read. "" is the target of this process.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from timberframe_core.config import SessionConfig
from timberframe_core.errors import AlreadyExistsError, InternalError, InvalidArgumentError, NotFoundError
from timberframe_core.plugin.contracts import Device

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "timberframe.targets"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)(?::|\Z)(?://)?")
_MEMBERS = ("open", "reset")


class Target(Protocol):
    """A target as one session uses it.

    Its devices may be in other processes. Such a device

    - names its job and task in `spec`, and has an `incarnation` that no other start of its process had;
    - takes a cluster to its process in the wire form (`plugin.wire`), and makes the variables that live with it
      (`Device.variable`);
    - raises UnavailableError when its process has died or, by a deadline that the target states, does not answer, and
      AbortedError when another incarnation does: what the session had there is lost. Errors name device and target;
    - has its process end a run when the `cancel` of the run's context says so, and raises the reason soon after.

    A target of other processes may have `positions()` and `set_positions(positions)`, which do for what these keep for
    the session, such as random streams, what `ResourceStore` does; keys of others are to be left alone.
    """

    def devices(self) -> Sequence[Device]:
        """Returns the devices that the session may use, best first; those of this process are among
        them where it wants them.

        FailedPreconditionError says what is missing where there are none.
        """

    def close(self) -> None:
        """Gives back what the session holds of the target; called once, when it is closed."""


class TargetKind(Protocol):
    """What is registered for a scheme: a module or an object with these functions."""

    def open(self, address: str, config: SessionConfig) -> Target:
        """Returns the target for a new session; address: what follows the scheme in the URL, "2" in "process:2"."""

    def reset(self, address: str, containers: Sequence[str]) -> None:
        """Drops what sessions left in these containers, or in all if none is named; all sessions are closed before."""


class Server(Protocol):
    """One task of a cluster, in whose devices sessions on `target` run first."""

    target: str

    def start(self) -> None:
        """Makes the task's devices reachable; nothing where they are."""

    def join(self) -> None:
        """Returns when the task has ended."""


class ServingKind(TargetKind, Protocol):
    """A target that programs can start the tasks of: one that also has this function."""

    def serve(self, cluster: Mapping[str, Mapping[int, str]] | None, job: str, task: int) -> Server:
        """Returns what serves a task, and finds the others; it ends with this process.

        cluster: the addresses of all tasks, by job and number; None for a cluster of this task alone, on this machine.
        UnavailableError where the engine does not run, AlreadyExistsError where another process serves the task.
        """


class _Registry:
    def __init__(self) -> None:
        self._kinds: dict[str, Any] = {}
        self._entries: dict[str, EntryPoint] | None = None
        self._lock = threading.RLock()

    def register(self, scheme: str, kind: Any) -> None:
        lacking = [m for m in _MEMBERS if not callable(getattr(kind, m, None))]
        if lacking:
            raise InternalError(f"target {scheme!r}: has no function {', '.join(lacking)}; every target must have them")
        with self._lock:
            if self._kinds.setdefault(scheme, kind) is not kind:
                raise AlreadyExistsError(f"target {scheme!r}: is registered already; schemes must differ")

    def find(self, url: str) -> tuple[TargetKind, str]:
        """Returns what is registered for a URL, loaded if need be, and the address in it."""
        found = _SCHEME.match(url)
        if url and found is None:
            raise InvalidArgumentError(
                f"session target {url!r} is malformed; '' (this process) or '<scheme>:<address>' is required"
            )
        scheme, address = (found.group(1), url[found.end() :]) if found else ("", "")
        with self._lock:
            if scheme not in self._kinds:
                self._load(scheme, url)
            return self._kinds[scheme], address

    def serving(self, protocol: str) -> ServingKind:
        """See `find_serving`."""
        with self._lock:
            for scheme in [protocol] if protocol else sorted(self._installed().keys() | self._kinds.keys() - {""}):
                if scheme not in self._kinds and scheme in self._installed():
                    self._load(scheme, scheme)
                found: Any = self._kinds.get(scheme)
                if callable(getattr(found, "serve", None)):
                    kind: ServingKind = found
                    return kind
        wanted = f"protocol {protocol!r}" if protocol else "clusters"
        raise NotFoundError(
            f"no installed package serves {wanted}: a target with a function `serve` is required, such as that of "
            "timberframe-ray"
        )

    def schemes(self) -> list[str]:
        """See `target_schemes`."""
        with self._lock:
            return sorted({*self._kinds, *self._installed()} - {""})

    def _load(self, scheme: str, url: str) -> None:
        entry = self._installed().get(scheme)
        if entry is None:
            known = ", ".join(f"'{s}:'" for s in self.schemes())
            raise NotFoundError(
                f"session target {url!r}: no installed package offers targets {scheme!r}; there are '' (this process)"
                f"{', ' if known else ''}{known}; one of them, or a package with the entry point {scheme!r} in "
                f"the group {ENTRY_POINT_GROUP}, is required"
            )
        self.register(scheme, entry.load())

    def _installed(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # here, since it takes long to import

        if self._entries is None:
            self._entries = {e.name: e for e in entry_points(group=ENTRY_POINT_GROUP)}
        return self._entries


_registry = _Registry()


def register_target(scheme: str, kind: TargetKind) -> None:
    """Registers what opens the targets of a scheme, for a program that brings its own.

    Packages do it by an entry point in the group `timberframe.targets`, named as the scheme, which is loaded when a
    session first uses it. Raises AlreadyExistsError for a scheme that is taken.
    """
    _registry.register(scheme, kind)


def find_target(url: str) -> tuple[TargetKind, str]:
    """Returns what is registered for a session's target, and the address in it.

    NotFoundError lists the schemes that are installed where this one is not; InvalidArgumentError: it is malformed.
    """
    return _registry.find(url)


def target_schemes() -> list[str]:
    """Returns the schemes of all targets that are installed or registered, in alphabetical order."""
    return _registry.schemes()


def find_serving(protocol: str = "") -> ServingKind:
    """Returns the target of this scheme, by default the first installed, that serves tasks;
    NotFoundError where none does.
    """
    return _registry.serving(protocol)
