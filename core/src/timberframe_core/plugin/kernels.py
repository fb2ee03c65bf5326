"""The registry of kernels: who can run which op on which device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from timberframe_core.dtypes import BY_NAME, DType
from timberframe_core.errors import AlreadyExistsError, InvalidArgumentError, NoKernelError
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import KernelDef

Generator = Callable[[OpDef], Iterable[KernelDef]]


class KernelRegistry:
    """KernelDefs by (op, device type). Registration is all or nothing; look-ups are cached.

    For an op that has no kernel on a device, generators are asked once, at the first look-up.
    """

    def __init__(self) -> None:
        self._table: dict[tuple[str, str], tuple[KernelDef, ...]] = {}
        self._found: dict[tuple[Any, ...], KernelDef | None] = {}
        self._generators: tuple[Generator, ...] = ()
        self._generated: set[str] = set()
        self._lock = threading.Lock()

    def register(self, kernels: Iterable[KernelDef]) -> None:
        """Adds kernels, or none of them: two with equal claims raise AlreadyExistsError that names both."""
        with self._lock:
            table = dict(self._table)
            for new in kernels:
                _check(new)
                key = new.op, new.device
                for old in table.get(key, ()):
                    if _same_claim(old, new):
                        raise AlreadyExistsError(
                            f"kernel {new.op} on {new.device}{_label(new)}: claimed by {old.origin()}, {new.origin()} "
                            f"for {_types(new)}; one of them needs a higher priority or a label"
                        )
                table[key] = (*table.get(key, ()), new)
            self._table = table
            self._found = {}

    def add_generator(self, generator: Generator) -> None:
        """Adds what makes kernels for ops that have none. Registered kernels win over generated ones."""
        with self._lock:
            self._generators = (*self._generators, generator)
            self._generated = set()

    def _generate(self, op: str) -> None:
        """Asks the generators for kernels of an op, for the devices on which it has none."""
        if op in self._generated:
            return
        definition = registry.find(op)
        with self._lock:
            table = dict(self._table)
            made = [] if definition is None else [k for generate in self._generators for k in generate(definition)]
            for new in made:
                if (op, new.device) not in self._table:
                    _check(new)
                    table[op, new.device] = (*table.get((op, new.device), ()), replace(new, priority=-1))
            self._table = table
            self._generated.add(op)

    def find(self, op: str, device_type: str, attrs: Mapping[str, Any]) -> KernelDef | None:
        """The kernel of highest priority that accepts these attrs and has the label of their `_kernel`, or None."""
        candidates = self._table.get((op, device_type))
        if candidates is None:
            self._generate(op)
            candidates = self._table.get((op, device_type))
        if candidates is None:
            return None
        label = _wanted_label(attrs)
        key = (op, device_type, label, *((name, v) for name, v in attrs.items() if isinstance(v, DType | tuple)))
        try:
            return self._found[key]
        except KeyError:
            fits = [k for k in candidates if k.label == label and k.accepts(attrs) is None]
            found = self._found[key] = max(fits, key=lambda k: k.priority, default=None)
            return found

    def refusal(self, op: str, device_type: str, attrs: Mapping[str, Any]) -> str | None:
        """None where `find` finds a kernel, else why there is none: what `Device.supports` says."""
        if self.find(op, device_type, attrs) is not None:
            return None
        return "; ".join(self.rejections(op, device_type, attrs)) or "no kernel is registered"

    def rejections(self, op: str, device_type: str, attrs: Mapping[str, Any]) -> list[str]:
        """Why each kernel of the op on this device type cannot be used, for messages."""
        label = _wanted_label(attrs)
        reasons = []
        for k in self._table.get((op, device_type), ()):
            why = k.accepts(attrs) or (f"label is {k.label!r}, wanted {label!r}" if k.label != label else None)
            if why:
                reasons.append(f"{k.origin()}: {why}")
        return reasons

    def device_types(self, op: str) -> list[str]:
        """Device types that have any kernel of the op."""
        self._generate(op)
        return sorted({device for name, device in self._table if name == op})

    def kernels(self, op: str | None = None) -> Sequence[KernelDef]:
        """Every kernel, by op and device, or those of one op, which are generated where need be."""
        if op is not None:
            self._generate(op)
        return [k for key in sorted(self._table) for k in self._table[key] if op in (None, k.op)]

    def require(self, op: str, name: str, device_type: str, attrs: Mapping[str, Any]) -> KernelDef:
        """Like `find`; raises NoKernelError that lists what is registered and why it does not fit."""
        found = self.find(op, device_type, attrs)
        if found is not None:
            return found
        reasons = self.rejections(op, device_type, attrs)
        elsewhere = [d for d in self.device_types(op) if d != device_type]
        raise NoKernelError(
            f"{op} '{name}': no kernel on {device_type} ({'; '.join(reasons) or 'none is registered'}); "
            f"other devices with the op: {', '.join(elsewhere) or 'none'}",
            name,
        )


def _check(kernel: KernelDef) -> None:
    """Raises NotFoundError for an op that nobody defines, InvalidArgumentError for types that name no attr or dtype.

    The package of a vendor's op (``Vendor>Op``) may be absent: its kernels then wait for nothing.
    """
    op = registry.find(kernel.op) if ">" in kernel.op else registry.get(kernel.op)
    for name, allowed in kernel.types.items():
        if op is not None and (name not in op.attrs or not op.attrs[name].kind.endswith(("type", "type)"))):
            names = ", ".join(a.name for a in op.attrs.values() if a.kind.endswith(("type", "type)"))) or "none"
            raise InvalidArgumentError(
                f"kernel {kernel.op} on {kernel.device}: types names {name!r}; the op's type attrs are {names}"
            )
        wrong = [d for d in allowed if d not in BY_NAME or BY_NAME[d].name != d]
        if wrong:
            raise InvalidArgumentError(
                f"kernel {kernel.op} on {kernel.device}: {', '.join(map(repr, wrong))} in types; "
                "names such as 'float32' are required"
            )


def _same_claim(a: KernelDef, b: KernelDef) -> bool:
    if a.priority != b.priority or a.label != b.label:
        return False
    both = a.types.keys() & b.types.keys()
    return all(set(a.types[t]) & set(b.types[t]) for t in both)


def _wanted_label(attrs: Mapping[str, Any]) -> str:
    return str(attrs.get("_kernel", ""))


def _label(k: KernelDef) -> str:
    return f" (label {k.label!r})" if k.label else ""


def _types(k: KernelDef) -> str:
    return ", ".join(f"{name} in {{{', '.join(allowed)}}}" for name, allowed in k.types.items()) or "all dtypes"
