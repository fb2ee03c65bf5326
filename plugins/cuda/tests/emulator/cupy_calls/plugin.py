"""The names and calls of CuPy in the plugin's sources, read from their syntax trees.

What a variable or attribute is follows from assignments (``self._pool = cupy.cuda.MemoryPool()``), annotations
(``event: cupy.cuda.Event``) and the results in the table; an attribute of another object goes by its name alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cupy_calls import KINDS, TABLE, table

SOURCES = Path(__file__).parents[3] / "src" / "timberframe_cuda"
HINTS = {"handle": "cupy.cuda.MemoryPointer"}
"""Attributes that no source of the plugin declares: a tensor's handle."""
RESULTS = {
    "cupy.cuda.Module.get_function": "cupy.cuda.Function", "cupy.cuda.Stream.end_capture": "cupy.cuda.Graph",
    "cupy.cuda.MemoryPool.malloc": "cupy.cuda.MemoryPointer", "cupy.get_default_memory_pool": "cupy.cuda.MemoryPool",
}  # fmt: skip
"""Classes of results, known also where there is no table yet."""
Scope = ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.Module


@dataclass
class Use:
    """A name of CuPy where the plugin uses it. call: the arguments, where it is called."""

    name: str
    where: str
    call: ast.Call | None = None
    types: tuple[list[str], dict[str, str]] = field(default_factory=lambda: ([], {}))
    """Types of the positional and of the named arguments; "" is unknown."""


class Module:
    """A source of the plugin. attributes: classes of attributes by their names, of all sources."""

    def __init__(self, path: Path, text: str, attributes: dict[str, str]) -> None:
        self.path, self.tree, self.attributes = path, ast.parse(text), attributes
        self.imported: dict[str, str] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        self.locals: dict[tuple[ast.AST, str], str] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, ast.Import):
                self.imported |= {a.asname or a.name: a.name for a in node.names if a.name == "cupy"}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cupy":
                self.imported |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}

    def learn(self) -> None:
        """Notes what assignments and annotations say of names."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assign(target, node.value)
            elif isinstance(node, ast.AnnAssign):
                self._note(node.target, self._annotated(node.annotation))
            elif isinstance(node, ast.arg) and node.annotation is not None:
                self._note(ast.Name(node.arg), self._annotated(node.annotation), node)
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                self._note(ast.Attribute(node, node.name), self._annotated(node.returns), node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=True):
                self._assign(one, part)
        else:
            self._note(target, self.kind(value), target)

    def _note(self, target: ast.AST, kind: str, at: ast.AST | None = None) -> None:
        if not kind.startswith("cupy."):
            if isinstance(target, ast.Name) and kind:
                self.locals.setdefault((self._scope(at or target), target.id), kind)
        elif isinstance(target, ast.Attribute):
            self.attributes.setdefault(target.attr, kind)
            self.attributes[f"{self._class(at or target)}.{target.attr}"] = kind
        elif isinstance(target, ast.Name):
            self.locals[self._scope(at or target), target.id] = kind

    def _annotated(self, annotation: ast.expr) -> str:
        if isinstance(annotation, ast.BinOp):  # X | None
            return self._annotated(annotation.left)
        if isinstance(annotation, ast.Name) and annotation.id in KINDS:
            return annotation.id
        return self.path_of(annotation)

    def _scope(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, Scope):
            node = self.parents[node]
        return node

    def _class(self, node: ast.AST) -> str:
        """Returns the name of the class that a node is in."""
        while not isinstance(node, ast.ClassDef | ast.Module):
            node = self.parents[node]
        return node.name if isinstance(node, ast.ClassDef) else self.path.stem

    def path_of(self, node: ast.AST) -> str:
        """Returns the name in CuPy that an expression stands for; empty if for none."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self.path_of(node.value) or self.kind(node.value)
            return f"{owner}.{node.attr}" if owner.startswith("cupy") and owner != "cupy.__version__" else ""
        return ""

    def kind(self, node: ast.AST) -> str:
        """Returns the type of an expression's value: a class of CuPy, or a type of Python; empty where unknown."""
        if isinstance(node, ast.Call):
            called = self.path_of(node.func)
            if called.rpartition(".")[2][:1].isupper():
                return called
            if isinstance(node.func, ast.Name) and node.func.id in KINDS:
                return node.func.id
            return _result(called)
        if isinstance(node, ast.BinOp):
            return self.kind(node.left)
        if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.JoinedStr):
            written = {ast.Tuple: "tuple", ast.List: "list", ast.JoinedStr: "str"}
            return type(node.value).__name__ if isinstance(node, ast.Constant) else written[type(node)]
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            return self.attributes.get(f"{self._class(node)}.{node.attr}" if own else node.attr, "")
        if isinstance(node, ast.Name):
            scope: ast.AST | None = node
            while scope is not None:
                if (scope, node.id) in self.locals:
                    return self.locals[scope, node.id]
                scope = self.parents.get(scope)
        return ""

    def uses(self) -> Iterator[Use]:
        for node in ast.walk(self.tree):
            where = f"{self.path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                called = self.path_of(node.func) or _calls_itself(self.kind(node.func))
                if called and called != "cupy":
                    given = [self.kind(a) for a in node.args]
                    named = {k.arg: self.kind(k.value) for k in node.keywords if k.arg}
                    if called.rpartition(".")[2][:1].isupper() and not called.startswith("cupy.cuda.nvtx."):
                        yield Use(called, where)
                        called += ".__init__"
                    yield Use(called, where, node, (given, named))
            elif isinstance(node, ast.With):
                for item in node.items:
                    if (entered := self.kind(item.context_expr)).startswith("cupy."):
                        yield Use(f"{entered}.__enter__", where, ast.Call(item.context_expr, [], []))
            elif isinstance(node, ast.Constant) and re.fullmatch("NCCL_[A-Z0-9_]+", str(node.value)):
                yield Use(f"cupy.cuda.nccl.{node.value}", where)  # for getattr
            elif isinstance(node, ast.Attribute) and not self._goes_on(node) and (name := self.path_of(node)):
                yield Use(name, where)

    def _goes_on(self, node: ast.Attribute) -> bool:
        """Returns whether an attribute is called, or another one of it is taken."""
        parent = self.parents[node]
        return isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node)


def _calls_itself(kind: str) -> str:
    return f"{kind}.__call__" if kind == "cupy.cuda.Function" else ""


def _result(called: str) -> str:
    if called in RESULTS or not called or not TABLE.exists():
        return RESULTS.get(called, "")
    kinds = {rows[called].result for rows in table().values() if called in rows}
    (kind,) = kinds if len(kinds) == 1 else ("",)
    return kind if kind in KINDS or not kind else f"cupy.cuda.{kind}"


def modules(texts: dict[Path, str] | None = None) -> list[Module]:
    """Returns the plugin's sources. texts: others in their place."""
    attributes = dict(HINTS)
    texts = texts or {path: path.read_text() for path in sorted(SOURCES.glob("*.py"))}
    found = [Module(path, text, attributes) for path, text in texts.items()]
    for _ in range(3):  # what one assignment says may rest on another
        for module in found:
            module.learn()
    return found


def uses(texts: dict[Path, str] | None = None) -> list[Use]:
    """Returns everything of CuPy that the plugin uses."""
    return [use for module in modules(texts) for use in module.uses()]


def names() -> set[str]:
    """Returns the names of CuPy that the plugin uses."""
    return {use.name for use in uses()}
