"""`kernel`: a decorator that declares the builder below it as a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from timberframe_core.plugin.contracts import KernelDef, KernelNode
from timberframe_sdk.reference import reference_launcher

Builder = TypeVar("Builder", bound=Callable[[KernelNode], Any])


def kernel(
    into: list[KernelDef],
    op: str | Sequence[str],
    device: str,
    *,
    types: Mapping[str, Sequence[str]] | None = None,
    **rest: Any,
) -> Callable[[Builder], Builder]:
    """Appends a KernelDef for each op to the list `into`; `rest` are further fields of KernelDef.

    One whose builder is `reference_launcher` is a `fallback`.
    """

    def declare(build: Builder) -> Builder:
        allowed = {name: tuple(names) for name, names in (types or {}).items()}
        rest.setdefault("fallback", build is reference_launcher)
        names = (op,) if isinstance(op, str) else op
        into.extend(KernelDef(name, device, build, allowed, **rest) for name in names)
        return build

    return declare
