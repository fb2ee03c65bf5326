"""A program: a small graph as plain data.

Everything else follows from it: the graph (`build.py`), JSON for the store, a stand-alone script (`script.py`). So a
failure stays the same when ops are added to the registry, it can be sent to processes that may die of it, and it
shrinks by deleting steps and simplifying values.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.dtypes import BY_NAME, DType, as_dtype

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Ref = tuple[int, int]
"""(step, output): a value that an earlier step made."""

Inputs = tuple[Ref | tuple[Ref, ...], ...]

KINDS = {
    "input": "a parameter of a body",
    "feed": "a placeholder that is fed `value`; `known` is its static shape, None where the rank is unknown",
    "const": "a constant",
    "variable": "the value of a variable that starts with `value`, read",
    "assign": "assigns to the variable of a step by `op`, and reads it after that",
    "op": "a node",
    "call": "a function of `tf` by name; attrs are its keyword arguments, attrs['inputs'] names those of the inputs",
    "cond": "tf.cond: a predicate, and values that both bodies get",
    "case": "tf.switch_case: a branch number, and values that all bodies get",
    "while": "tf.while_loop: a number of iterations, and loop variables; the body gets the iteration's number first",
    "map": "tf.map_fn over rows of the first input; the body gets the row and the other inputs",
    "scan": "tf.scan from the first input over rows of the second; the body gets both and the other inputs",
    "array": "a TensorArray that the inputs are written to, read as attrs['read'] says",
    "host": "tf.py_func of a function by name; its outputs have the shapes of the inputs where attrs['shaped']",
    "queue": "a queue that the inputs are added to, taken one by one or, with attrs['many'], as rows",
    "table": "the values of keys in a hash table",
    "random": "a node that draws from a random stream",
    "grad": "tf.gradients of the first list of inputs by the second",
}

PLACED = ("op", "call", "grad", "variable")
"""Kinds of steps whose nodes may be put on a device."""


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a program; kind: one of KINDS. device: "", "host", or "device", the one under test."""

    kind: str
    op: str = ""
    inputs: Inputs = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    value: np.ndarray | None = None
    known: tuple[int | None, ...] | None = None
    bodies: tuple[Program, ...] = ()
    device: str = ""

    def refs(self) -> list[Ref]:
        """Returns all inputs, flat."""
        return [r for x in self.inputs for r in ([x] if is_ref(x) else x)]


@dataclass(frozen=True, eq=False)
class Program:
    """Steps in order, and what is fetched (of a body: what it returns)."""

    steps: tuple[Step, ...]
    outputs: tuple[Ref, ...]

    def all_steps(self) -> Iterator[Step]:
        """Yields the steps, and those of bodies."""
        for step in self.steps:
            yield step
            for body in step.bodies:
                yield from body.all_steps()

    @property
    def size(self) -> int:
        """How many steps compute something."""
        return sum(s.kind not in ("input", "feed", "const", "variable") for s in self.all_steps())

    def placed(self, choose: Callable[[Step, int], str]) -> Program:
        """Returns the same with other devices of the steps that may have one, those of bodies too:
        ``choose(step, number)``.
        """
        steps = []
        for i, step in enumerate(self.steps):
            bodies = tuple(body.placed(choose) for body in step.bodies)
            steps.append(replace(step, bodies=bodies, device=choose(step, i) if step.kind in PLACED else ""))
        return replace(self, steps=tuple(steps))

    @property
    def has_updates(self) -> bool:
        """Whether a run changes variables."""
        return self.updates > 0

    @property
    def draws(self) -> bool:
        """Whether runs draw random numbers, so that no two of a session are equal."""
        return any(s.kind == "random" for s in self.all_steps())

    @property
    def queues(self) -> bool:
        """Whether runs share queues: one may take what another one added, and leaves elements where it fails."""
        return any(s.kind == "queue" for s in self.all_steps())

    @property
    def updates(self) -> int:
        """How many steps change variables."""
        return sum(s.kind == "assign" for s in self.all_steps())


def is_ref(x: Ref | tuple[Ref, ...]) -> TypeIs[Ref]:
    """Returns whether an input is one value rather than a list."""
    return len(x) == 2 and isinstance(x[0], int)


def renamed(inputs: Inputs, numbers: dict[int, int]) -> Inputs:
    """Inputs whose steps have other numbers."""
    return tuple((numbers[x[0]], x[1]) if is_ref(x) else tuple((numbers[s], o) for s, o in x) for x in inputs)


def to_json(program: Program) -> str:
    """Returns the program as text."""
    return json.dumps(_program(program))


def from_json(text: str) -> Program:
    """Returns the program that `to_json` wrote."""
    return _read_program(json.loads(text))


def _program(p: Program) -> dict[str, Any]:
    return {"steps": [_step(s) for s in p.steps], "outputs": p.outputs}


def _step(s: Step) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": s.kind}
    if s.op:
        data["op"] = s.op
    if s.inputs:
        data["inputs"] = s.inputs
    if s.attrs:
        data["attrs"] = {k: _plain(v) for k, v in s.attrs.items()}
    if s.value is not None:
        data["value"] = _plain(s.value)
    if s.kind == "feed":
        data["known"] = s.known
    if s.bodies:
        data["bodies"] = [_program(b) for b in s.bodies]
    if s.device:
        data["device"] = s.device
    return data


def _read_program(data: Any) -> Program:
    return Program(tuple(map(_read_step, data["steps"])), _tuples(data["outputs"]))


def _read_step(data: Any) -> Step:
    return Step(
        data["kind"],
        data.get("op", ""),
        _tuples(data.get("inputs", [])),
        {k: _value(v) for k, v in data.get("attrs", {}).items()},
        _value(data["value"]) if "value" in data else None,
        None if data.get("known") is None else tuple(data["known"]),
        tuple(map(_read_program, data.get("bodies", []))),
        data.get("device", ""),
    )


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _plain(x: Any) -> Any:
    """Returns an attr or array in what JSON has."""
    if isinstance(x, DType):
        return {"dtype": x.name}
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, np.ndarray) and x.dtype == object:
        return {"strings": [v.hex() for v in x.ravel()], "shape": x.shape}
    if isinstance(x, np.ndarray):
        packed = base64.b85encode(zlib.compress(np.ascontiguousarray(x).tobytes())).decode()
        return {"array": as_dtype(x.dtype).name, "shape": x.shape, "data": packed}
    if isinstance(x, bytes):
        return {"bytes": x.hex()}
    if isinstance(x, float) and not np.isfinite(x):
        return {"float": repr(x)}
    return [_plain(v) for v in x] if isinstance(x, tuple | list) else x


def _value(x: Any) -> Any:
    if isinstance(x, list):
        return tuple(map(_value, x))
    if not isinstance(x, dict):
        return x
    if "dtype" in x:
        return BY_NAME[x["dtype"]]
    if "strings" in x:
        array = np.empty(len(x["strings"]), object)
        array[:] = [bytes.fromhex(v) for v in x["strings"]]
        return array.reshape(x["shape"])
    if "array" in x:
        data = zlib.decompress(base64.b85decode(x["data"]))
        return np.frombuffer(bytearray(data), BY_NAME[x["array"]].numpy).reshape(x["shape"])
    return bytes.fromhex(x["bytes"]) if "bytes" in x else float(x["float"])
