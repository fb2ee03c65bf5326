"""The registry of OpDefs: all ops, those of plugins included."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from timberframe_core.errors import AlreadyExistsError, NotFoundError
from timberframe_core.ops.definition import packages
from timberframe_core.ops.definition.index import IndexedOp, import_all, indexed_ops

if TYPE_CHECKING:
    from timberframe_core.ops.definition.opdef import OpDef

_ops: dict[str, OpDef] = {}
_modules: dict[str, str] = {}
"""By op, the module that defines it."""
_lock = threading.RLock()


def register(op: OpDef) -> None:
    """Adds an op. An identical redefinition is accepted, another one raises AlreadyExistsError."""
    module, indexed = _defining_module(), _indexed(op.name)
    if indexed is not None and indexed.module != module:
        import_module(indexed.module)  # that definition is the first, whenever it is imported
    with _lock:
        old = _ops.get(op.name)
        if old is not None and old.signature() != op.signature():
            raise AlreadyExistsError(
                f"op {op.name}: defined by {_modules[op.name]} and, differently, by {module}; "
                "a second definition must be identical (custom ops are named 'Vendor>Op')"
            )
        _ops[op.name] = old or op
        _modules.setdefault(op.name, module)


def module_of(name: str) -> str:
    """Returns the module that defines an op of the registry: the one whose import did."""
    get(name)
    return _modules[name]


def _indexed(name: str) -> IndexedOp | None:
    """Returns what the index of the frame, or else of an installed package, says of an op; None where none does."""
    return indexed_ops().get(name) or packages.indexed(name)


def _defining_module() -> str:
    """Returns the module that is being imported, which may call functions of others that define
    ops; "" if there is none.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


def substitute(op: OpDef) -> OpDef:
    """Puts a definition in place of the one with its name, which it returns; for tests that need a wrong one."""
    with _lock:
        old = get(op.name)
        _ops[op.name] = op
        return old


def unregister(name: str) -> None:
    """Takes an op out that a test has defined; graphs that have it keep it."""
    with _lock:
        del _ops[name], _modules[name]


def find(name: str) -> OpDef | None:
    """Returns the op, importing the module that defines it or the package whose entry point names
    it; None if nobody has it.

    Where that package cannot be imported, `missing` says why.
    """
    op = _ops.get(name)
    if op is None:
        indexed = indexed_ops().get(name)
        if indexed is not None:
            import_module(indexed.module)
        else:
            packages.load(name)
        op = _ops.get(name)
    return op


def type_attrs(name: str) -> tuple[str, ...]:
    """Returns names of an op's attrs that are dtypes or lists of them, by the index where the op was not imported.

    Raises NotFoundError as `get` does.
    """
    indexed = None if name in _ops else _indexed(name)
    if indexed is not None:
        return indexed.type_attrs
    return tuple(a.name for a in get(name).attrs.values() if a.kind in ("type", "list(type)"))


def input_count(name: str) -> int | None:
    """Returns the number of an op's inputs, None where one is a list; found and raised as by `type_attrs`."""
    indexed = None if name in _ops else _indexed(name)
    if indexed is not None:
        return indexed.inputs
    inputs = get(name).inputs
    return None if any(a.is_list for a in inputs) else len(inputs)


def missing() -> dict[str, str]:
    """Ops of installed packages that were looked for and are not there, with package, entry point and error."""
    return {name: why for name, why in packages.missing().items() if name not in _ops}


def knows(name: str) -> bool:
    """Returns whether there is an op of this name; one that an index has is not imported."""
    return name in _ops or _indexed(name) is not None or find(name) is not None


def absent_packages() -> list[str]:
    """Returns the packages that are not there and alone know which ops they have: entry point and error of each."""
    return packages.absent()


def get(name: str) -> OpDef:
    """Returns the op; raises NotFoundError with the nearest names, or with what is wrong
    with the package that has it.
    """
    op = find(name)
    if op is None:
        import_all()
        packages.load_whole_packages()
        op = _ops.get(name)
    if op is None and name in missing():
        raise NotFoundError(f"op {name}: not registered; {missing()[name]}")
    if op is None:
        import difflib

        near = difflib.get_close_matches(name, _ops, 3)
        hints = [f"nearest names: {', '.join(near)}"] if near else []
        raise NotFoundError("; ".join([f"op {name}: not registered", *hints, *absent_packages()]))
    return op


def all_ops() -> Iterator[OpDef]:
    """Returns every op, by name, those of installed packages included, as far as these can be imported."""
    import_all()
    packages.load_all()
    return iter([_ops[name] for name in sorted(_ops)])
