"""The ops on datasets and iterators, whose functions are imported when one of them is first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from timberframe_core.ops.definition import registry
from timberframe_core.plugin.host_ops import HostCall, host_op


@cache
def _functions() -> Mapping[str, Callable[[HostCall], list[Any]]]:
    for module in ("dataset_ops", "iterator_ops"):
        import_module(f"timberframe.pipelines.{module}")
    found: Mapping[str, Callable[[HostCall], list[Any]]] = import_module("timberframe.pipelines.registry").FUNCTIONS
    return found


def _run(call: HostCall) -> list[Any]:
    return _functions()[call.op](call)


host_op(*registry.defined_in("timberframe_ops.data"))(_run)
