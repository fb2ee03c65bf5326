"""Makes a program smaller while it fails in the same way: fewer statements, simpler expressions."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator


def shrink(source: str, fails: Callable[[str], bool], seconds: float) -> str:
    """Returns the smallest program found that fails; the given one where nothing smaller does."""
    end = time.monotonic() + seconds
    seen = {source}
    progress = True
    while progress:
        progress = False
        for candidate in _candidates(source):
            if time.monotonic() > end:
                return source
            if candidate in seen:
                continue
            seen.add(candidate)
            if fails(candidate):
                source, progress = candidate, True
                break
    return source


def _candidates(source: str) -> Iterator[str]:
    """Yields simpler programs: without a statement, with a block's statements in its place, with part of an expression."""
    tree = ast.parse(source)
    count = sum(1 for _ in _bodies(tree))
    for which in range(count):
        body = _body(tree, which)
        for size in (len(body) // 2, 1):
            for start in range(len(body) - size, -1, -max(size, 1)):
                if size and (len(body) > size or which == 0):
                    yield _changed(tree, which, start, size)
    yield from _simpler(tree)


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield body


def _body(tree: ast.AST, which: int) -> list[ast.stmt]:
    return next(b for i, b in enumerate(_bodies(tree)) if i == which)


def _changed(tree: ast.Module, which: int, start: int, size: int) -> str:
    made = copy.deepcopy(tree)
    del _body(made, which)[start : start + size]
    return ast.unparse(made)


def _simpler(tree: ast.Module) -> Iterator[str]:
    """Programs in which one expression is a part of itself, or a number 1 or 0."""
    places = [
        (i, name, k)
        for i, node in enumerate(ast.walk(tree))
        for name, value in ast.iter_fields(node)
        for k, part in enumerate(value if isinstance(value, list) else [value])
        if isinstance(part, ast.expr)
    ]
    for i, name, k in places:
        for number in range(8):
            made = copy.deepcopy(tree)
            node = next(n for j, n in enumerate(ast.walk(made)) if j == i)
            field = getattr(node, name)
            whole = field[k] if isinstance(field, list) else field
            parts = _parts(whole)
            if number >= len(parts):
                break
            if isinstance(field, list):
                field[k] = parts[number]
            else:
                setattr(node, name, parts[number])
            try:
                yield ast.unparse(ast.fix_missing_locations(made))
            except (ValueError, TypeError):  # no expression can stand there
                continue


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value not in (0, 1):
        return [ast.Constant(type(node.value)(1)), ast.Constant(type(node.value)(0))]
    if isinstance(node, ast.Call):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [p for p in (*inner, *node.args) if not isinstance(p, ast.Lambda | ast.Starred | ast.Name)] + [
            p for p in node.args if isinstance(p, ast.Name)
        ]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
        return [type(node)([e for j, e in enumerate(node.elts) if j != i], ast.Load()) for i in range(len(node.elts))]
    return []
