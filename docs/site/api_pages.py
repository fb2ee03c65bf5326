"""Pages of the API reference: `tf.*` by namespace, what the SDK exports to plugins, and classes of the core.

What a page has of a name is its signature and its docstring. A name that stands for the same thing as one of an earlier
page refers to that.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import timberframe as tf
import timberframe_sdk as sdk
from markdown import plain
from parameters import described_elsewhere, doc, parameters
from timberframe_core.dtypes import DType
from timberframe_core.plugin.hooks import HookSpecs

NAMESPACES = (
    "app", "bitwise", "compat", "data", "data.experimental", "debugging", "distributions", "dtypes", "errors",
    "estimator", "estimator.experimental", "estimator.export", "estimator.inputs", "feature_column", "flags",
    "app.flags", "gfile", "graph_util", "image", "initializers", "io", "io.gfile", "layers", "linalg", "logging",
    "lookup", "losses", "manip", "math", "metrics", "nn", "nn.rnn_cell", "profiler", "python_io", "quantization",
    "queue", "random", "saved_model", "sets", "signal", "sparse", "spectral", "strings", "summary", "test", "train",
    "version", "contrib.crf", "contrib.data", "contrib.eager", "contrib.estimator", "contrib.factorization",
    "contrib.feature_column", "contrib.framework", "contrib.framework.nest", "contrib.layers", "contrib.learn",
    "contrib.learn.preprocessing", "contrib.legacy_seq2seq", "contrib.lookup", "contrib.losses", "contrib.metrics",
    "contrib.opt", "contrib.predictor", "contrib.rnn", "contrib.seq2seq", "contrib.slim", "contrib.tpu",
    "contrib.training",
)  # fmt: skip
"""The namespaces of TensorFlow 1 that `tf` has."""
CORE = (
    "ops.definition.opdef", "ops.definition.registry", "ops.definition.accuracy", "ops.definition.samples",
    "graph.graph", "graph.operation", "compiler.plan", "plugin.contracts", "plugin.kernels", "plugin.loader",
    "runtime.session", "runtime.explain",
)  # fmt: skip
"""Modules of the core whose classes others meet."""
_PACKAGES = ("timberframe", "timberframe_contrib", "timberframe_core", "timberframe_sdk")

Members = Mapping[str, Any]


def members(namespace: Any) -> dict[str, Any]:
    """Returns the functions, classes and other objects with a docstring of their own that a namespace offers."""
    found = {name: getattr(namespace, name) for name in sorted(dir(namespace)) if name[0] != "_"}
    return {
        name: value
        for name, value in found.items()
        if (inspect.isclass(value) or callable(value))
        and str(getattr(value, "__module__", "")).split(".")[0] in _PACKAGES
        and not isinstance(value, ModuleType)
    }


def values(namespace: Any) -> list[str]:
    """Returns the names of what is no member: constants, dtypes, messages, and functions of absl."""
    found = {name: getattr(namespace, name) for name in sorted(dir(namespace)) if name[0] != "_"}
    kinds = DType | int | float | str | None
    return [
        name
        for name, value in found.items()
        if isinstance(value, kinds)
        or hasattr(value, "DESCRIPTOR")
        or str(getattr(value, "__module__", "")).startswith("absl")
        or (not callable(value) and type(value).__module__.split(".")[0] in _PACKAGES)
    ]


def own_members(module: ModuleType) -> dict[str, Any]:
    """Returns those that the module itself defines."""
    return {name: value for name, value in members(module).items() if value.__module__ == module.__name__}


def _find(path: str) -> Any:
    found: Any = tf
    for part in path.split("."):
        found = getattr(found, part)
    return found


class Pages:
    """Makes pages one after the other, and knows what earlier ones have."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def page(self, title: str, prefix: str, found: Members, text: str = "", constants: Sequence[str] = ()) -> str:
        """Returns a page of members, whose names are `prefix` and their own, and of the names of constants."""
        parts, others, links = [], [], []
        for name, value in found.items():
            if id(value) in self._names:
                others.append(f"- `{prefix}{name}` is {{py:obj}}`{self._names[id(value)]}`")
                continue
            self._names[id(value)] = prefix + name
            links.append(f"{{py:obj}}`{name} <{prefix}{name}>`")
            parts.append(_class(prefix + name, value) if inspect.isclass(value) else _function(prefix + name, value))
        if others:
            parts.append("## Also here\n\n" + "\n".join(others) + "\n")
        if constants:
            parts.append(
                "## Constants, dtypes and messages\n\n" + "\n".join(f"`{prefix}{n}`" for n in constants) + "\n"
            )
        return "\n".join([f"# {title}\n\n{plain(text)}\n\n{' '.join(links)}\n", *parts])


def pages() -> Iterator[tuple[str, str]]:
    """Yields the path and text of each page, the index first."""
    make = Pages()
    made = {"tf": make.page("tf", "tf.", members(tf), doc(tf), values(tf))}
    for path in NAMESPACES:
        space = _find(path)
        made[f"tf.{path}"] = make.page(f"tf.{path}", f"tf.{path}.", members(space), doc(space), values(space))
    made["sdk"] = make.page("timberframe_sdk", "timberframe_sdk.", members(sdk), doc(sdk))
    hooks = {n: f for n, f in vars(HookSpecs).items() if n.startswith("timberframe_")}
    made["hooks"] = make.page("Hooks of a plugin", "", hooks, doc(HookSpecs))
    for name in CORE:
        module = importlib.import_module(f"timberframe_core.{name}")
        made[f"core.{name}"] = make.page(module.__name__, f"{module.__name__}.", own_members(module), doc(module))
    yield "index.md", _index(list(made))
    yield from ((f"{name}.md", text) for name, text in made.items())


def _index(names: list[str]) -> str:
    groups = {
        "For users: `tf.*`": [n for n in names if n.split(".")[0] == "tf"],
        "For plugins": ["sdk", "hooks"],
        "The core": [n for n in names if n.startswith("core.")],
    }
    text = "# API reference\n\nPublic names with their signatures and docstrings. Search finds them by name.\n"
    for heading, pages in groups.items():
        links = "\n".join(f"- [](<{name}.md>)" for name in pages)
        text += f"\n## {heading}\n\n{links}\n"
    return text + "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def _class(name: str, kind: type) -> str:
    """Returns a class with its public methods and properties."""
    body = [_docstring(kind)]
    for member, value in vars(kind).items():
        if member[0] == "_":
            continue
        if isinstance(value, property):
            body.append(_directive("py:property", member, plain(doc(value)), 4))
        elif inspect.isroutine(value) or isinstance(value, classmethod | staticmethod):
            function = getattr(kind, member)
            body.append(_function(member, function, "py:method", 4))
    what = "py:exception" if issubclass(kind, BaseException) else "py:class"
    return _directive(what, name + _signature(kind), "\n".join(body), 5)


def _function(name: str, function: Callable[..., Any], directive: str = "py:function", fence: int = 4) -> str:
    return _directive(directive, name + _signature(function), _docstring(function), fence)


def _directive(what: str, signature: str, body: str, fence: int) -> str:
    marks = "`" * fence
    return f"{marks}{{{what}}} {signature}\n\n{body}\n{marks}\n"


def _signature(value: Any) -> str:
    """Returns names and defaults; annotations are for type checkers, and make signatures hard to read."""
    bare = [p.replace(annotation=p.empty) for p in parameters(value).values() if p.name != "self"]
    text = str(inspect.Signature(bare))
    return re.sub(r"<(?:function |class ')?([\w.]+)[^>]*>", r"\1", text)


def _docstring(value: Any) -> str:
    """Returns a docstring as Markdown; lines that begin with a parameter and a colon are a list.

    It goes on with what docstrings that it refers to, or of base classes, say of parameters that it does not name.
    """
    known, result = parameters(value), list[str]()
    for line in plain(doc(value)).splitlines():
        found = re.match(r"((?:\w|\\_)+(?:, (?:\w|\\_)+)*): ", line)
        names = found[1].replace("\\", "").split(", ") if found else []
        if found and all(name in known for name in names):
            result += _item(result, f"**{found[1]}**: {line[found.end() :]}")
        elif result and result[-1].startswith(("- ", "  ")) and line.strip():
            result.append(f"  {line.strip()}")
        else:
            result.append(line)
    for name, (text, owner) in described_elsewhere(value).items():
        result += _item(result, f"**{plain(name)}**, as of `{owner}`: {plain(text)}")
    return "\n".join(result)


def _item(before: list[str], text: str) -> list[str]:
    """Returns the lines of an item, which begins a list unless the lines before it are one."""
    listed = bool(before) and before[-1].startswith(("- ", "  "))
    return [*([] if listed else [""]), f"- {text}"]
