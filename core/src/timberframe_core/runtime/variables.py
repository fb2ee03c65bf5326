"""The variables of a session."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.plugin.contracts import Device, RandomStream, Variable, VariableVersion
from timberframe_core.shapes import StaticShape


class HeldVersion:
    """A value of a variable that is not written over as long as this lives."""

    __slots__ = ("device", "version")

    def __init__(self, device: Device, version: VariableVersion) -> None:
        self.device = device
        self.version = version  # with a lease

    def __del__(self) -> None:
        self.version.release()


class VariableStore:
    """Variables by name. A variable is made, without a value, when a plan first writes or reads it.

    stream_of: the random stream of a name. deterministic: random ops need a seed.
    """

    def __init__(self, stream_of: Callable[[str], RandomStream], deterministic: bool = False) -> None:
        self.deterministic = deterministic
        self._stream_of = stream_of
        self._variables: dict[str, Variable] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def get(self, name: str, device: Device, dtype: DType) -> Variable:
        """Returns the variable of this name; InvalidArgumentError where it has another dtype
        or lives on another device.
        """
        with self._lock:
            found = self._variables.get(name)
            if found is None:
                found = self._variables[name] = device.variable(name, next(self._numbers), dtype)
        if found.dtype is not dtype:
            raise InvalidArgumentError(
                f"VarHandleOp '{name}': the variable has dtype {found.dtype.name}; it is used as {dtype.name}", name
            )
        if found.device is not device:
            used = f"it is used on {device.spec}"
            if device.spec == found.device.spec:
                used = "sessions that share it need equal plugins and settings of devices, and this one has others"
            raise InvalidArgumentError(f"VarHandleOp '{name}': the variable lives on {found.device.spec}; {used}", name)
        return found

    def find(self, name: str) -> Variable | None:
        """Returns the variable of this name, None where there is none."""
        return self._variables.get(name)

    def forget(self, name: str) -> None:
        """Drops a variable that nobody can use any more; takes no lock, since a destructor calls it."""
        self._variables.pop(name, None)

    def shape(self, name: str) -> StaticShape | None:
        """Returns the shape of the variable's value, None while it has none."""
        found = self._variables.get(name)
        return None if found is None else found.shape

    def device(self, name: str) -> Device | None:
        """Returns where the variable lives, None while it does not exist."""
        found = self._variables.get(name)
        return None if found is None else found.device

    def snapshot(self, names: Sequence[str]) -> dict[str, HeldVersion]:
        """Returns the values of these variables at one moment, without those that have none.

        They are the versions themselves, not copies: a later update makes a new version while one of them is held.
        """
        with ExitStack() as stack:
            leased = [(v, v.lease()) for v in self._locked(names, stack)]
            return {v.name: HeldVersion(v.device, version) for v, version in leased if version is not None}

    def put_back(self, names: Sequence[str], versions: Mapping[str, HeldVersion]) -> None:
        """Gives these variables the versions of a snapshot again; those that it lacks lose their value."""
        with ExitStack() as stack:
            for variable in self._locked(names, stack):
                held = versions.get(variable.name)
                variable.restore(None if held is None else held.version)

    def _locked(self, names: Sequence[str], stack: ExitStack) -> list[Variable]:
        with self._lock:
            found = [self._variables[n] for n in dict.fromkeys(names) if n in self._variables]
        found.sort(key=lambda v: v.number)  # the order in which runs take the locks
        for variable in found:
            stack.enter_context(variable.lock)
        return found

    def destroy(self, name: str) -> bool:
        """Drops the variable's value; False if it had none."""
        found = self._variables.get(name)
        if found is None or found.shape is None:
            return False
        with found.lock:
            found.commit(None, None)
        return True

    def stream(self, op: str, name: str, seeded: bool) -> RandomStream:
        """Returns the random numbers of the node of this name, from their start when it is asked for first."""
        self.check_seed(op, name, seeded)
        return self._stream_of(name)

    def check_seed(self, op: str, name: str, seeded: bool) -> None:
        """InvalidArgumentError for a random op without a seed where sessions are deterministic."""
        if self.deterministic and not seeded:
            raise InvalidArgumentError(f"{op} '{name}': has no seed; in a deterministic session it needs one", name)

    def clear(self) -> None:
        """Drops all variables."""
        with self._lock:
            for variable in self._variables.values():
                variable.close()
            self._variables.clear()
