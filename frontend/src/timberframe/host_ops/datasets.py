"""The ops on datasets and iterators, whose functions are imported when one of them is first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import timberframe_ops
from timberframe_core.ops.definition.index import read_index
from timberframe_core.plugin.host_ops import HostCall, host_op


@cache
def _functions() -> Mapping[str, Callable[[HostCall], list[Any]]]:
    for module in ("dataset_ops", "iterator_ops"):
        import_module(f"timberframe.pipelines.{module}")
    found: Mapping[str, Callable[[HostCall], list[Any]]] = import_module("timberframe.pipelines.registry").FUNCTIONS
    return found


def _run(call: HostCall) -> list[Any]:
    return _functions()[call.op](call)


for _name, _op in read_index(Path(timberframe_ops.__file__).with_name("index.json"), "timberframe_ops").items():
    if _op.module.startswith("timberframe_ops.data."):
        host_op(_name)(_run)
