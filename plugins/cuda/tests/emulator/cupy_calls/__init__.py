"""The declarations in CuPy's own sources of everything that the plugin uses, at several versions.

``calls.toml`` has a row for each name and version: file and line in CuPy's sources, and the declaration there: of a
function its parameters and result with the types that Cython enforces, of a constant its value, else ``class`` or
``attribute``.
"""

from __future__ import annotations

import ast
import inspect
import operator
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("calls.toml")
KINDS: dict[str, type] = {t.__name__: t for t in (int, bool, float, bytes, str, tuple, list, dict)}
"""Types that Cython enforces and that Python has, too."""


@dataclass(frozen=True)
class Row:
    """A name of CuPy at one version. at: file and line. declared: see the module."""

    name: str
    at: str
    declared: str

    @property
    def result(self) -> str:
        """The type of a call's result, as far as the sources say it."""
        return self.declared.rpartition("->")[2].strip() if "->" in self.declared else ""

    @property
    def signature(self) -> inspect.Signature | None:
        """The parameters but ``self``; the types are their annotations. None for what is no function."""
        if not self.declared.startswith("("):
            return None
        (function,) = ast.parse(f"def f{self.declared}: ...").body
        assert isinstance(function, ast.FunctionDef)
        given, kind = function.args, inspect.Parameter
        optional = len(given.args) - len(given.defaults)
        made = [
            kind(a.arg, kind.POSITIONAL_OR_KEYWORD, default=kind.empty if i < optional else ..., annotation=_text(a))
            for i, a in enumerate(given.args)
        ]
        if given.vararg:
            made.append(kind(given.vararg.arg, kind.VAR_POSITIONAL))
        return inspect.Signature(made)

    def complaint(self, positional: list[str], named: dict[str, str]) -> str:
        """Returns why a call with arguments of these types ("" where unknown) does not fit; empty where it does."""
        signature = self.signature
        if signature is None:
            return "" if self.declared == "class" else f"{self.name} is no function but {self.declared}"
        try:
            bound = signature.bind(*positional, **named).arguments
        except TypeError as e:
            return f"{self.name}{self.declared}: {e}"
        wrong = [
            f"{name} is {found}, required is {wanted}"
            for name, found in bound.items()
            if isinstance(found, str) and (wanted := signature.parameters[name].annotation) and not _fits(found, wanted)
        ]
        return f"{self.name}{self.declared}: {'; '.join(wrong)}" if wrong else ""


def _text(argument: ast.arg) -> str:
    return ast.unparse(argument.annotation) if argument.annotation else ""


def _fits(found: str, wanted: str) -> bool:
    """Returns whether Cython takes a value of one type for a parameter of another; unknown types fit."""
    if wanted in ("int", "bool", "float"):
        return found in ("", "int", "bool", wanted)
    return found in ("", wanted) if wanted in KINDS else found not in KINDS


@cache
def table(path: Path = TABLE) -> dict[str, dict[str, Row]]:
    """Returns the rows by version and name."""
    versions: dict[str, dict[str, Row]] = {}
    for name, rows in tomllib.loads(path.read_text()).items():
        for version, (at, declared) in rows.items():
            versions.setdefault(version, {})[name] = Row(name, at, declared)
    return versions


def nearest(version: str) -> str:
    """Returns the version in the table that stands for one of CuPy: itself, the same major
    version's, or the development's.
    """
    same = [v for v in table() if v.split(".")[0] == version.split(".")[0]]
    return version if version in table() else same[0] if same else "main"


def check_calls(cupy: Any, version: str) -> None:
    """Makes every call of an emulated CuPy that the table knows raise TypeError where CuPy itself would."""
    for name, row in table()[nearest(version)].items():
        owner: Any = cupy
        *path, last = name.split(".")[1:]
        for part in path:
            owner = getattr(owner, part, None)
        call = vars(owner).get(last) if owner is not None else None
        if row.declared.startswith("(") and inspect.isfunction(call):
            setattr(owner, last, _checked(call, row, inspect.isclass(owner)))


def _checked(call: Callable[..., Any], row: Row, method: bool) -> Callable[..., Any]:
    signature = row.signature
    assert signature is not None
    kinds = {name: p.annotation for name, p in signature.parameters.items() if p.annotation in KINDS}

    @wraps(call)
    def checked(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given[method:], **named).arguments
        for name, wanted in kinds.items():
            if name in bound and not _is_a(bound[name], wanted):
                raise TypeError(f"{row.name}: {name} is {type(bound[name]).__name__}, required is {wanted}")
        return call(*given, **named)

    return checked


def _is_a(value: Any, wanted: str) -> bool:
    if wanted not in ("int", "bool"):
        return isinstance(value, KINDS[wanted])
    try:
        operator.index(value)
    except TypeError:
        return False
    return True
