"""Kernels that plugins make for ops when they are first looked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from timberframe_core.dtypes import float32, float64
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin.contracts import KernelDef, KernelNode
from timberframe_core.plugin.kernels import KernelRegistry


def made(node: Any) -> None: ...


def written(node: Any) -> None: ...


def node(op: str, device_type: str, attrs: Mapping[str, Any] | None = None) -> KernelNode:
    device: Any = SimpleNamespace(type=device_type)
    return KernelNode(op, "it", attrs or {}, [], [], device)


def generator(asked: list[str]) -> Any:
    def generate(op: OpDef) -> list[KernelDef]:
        asked.append(op.name)
        return [KernelDef(op.name, "ACME", made)]

    return generate


def test_an_op_without_a_kernel_gets_a_generated_one() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]))
    found = kernels.find(node("Tanh", "ACME"))
    assert found is not None
    assert found.build is made


def test_a_generator_is_asked_once_for_an_op() -> None:
    asked: list[str] = []
    kernels = KernelRegistry()
    kernels.add_generator(generator(asked))
    for device in ("ACME", "OTHER", "ACME", "OTHER"):
        kernels.find(node("Tanh", device))
    assert asked == ["Tanh"]


def test_a_registered_kernel_wins_over_a_generated_one_also_if_it_comes_later() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]))
    kernels.find(node("Tanh", "ACME"))
    kernels.register([KernelDef("Tanh", "ACME", written), KernelDef("Exp", "ACME", written)])
    assert [getattr(kernels.find(node(op, "ACME")), "build", None) for op in ("Tanh", "Exp")] == [written, written]


def test_a_kernel_of_another_plugin_leaves_other_dtypes_to_the_generated_one() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]), "acme")
    kernels.register([KernelDef("Tanh", "ACME", written, {"T": ("float32",)}, priority=1)], "other")
    found = [kernels.find(node("Tanh", "ACME", {"T": dtype})) for dtype in (float32, float64)]
    assert [getattr(kernel, "build", None) for kernel in found] == [written, made]


def test_nothing_is_generated_for_an_op_of_which_the_plugin_has_kernels() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]), "acme")
    kernels.register([KernelDef("Tanh", "ACME", written, {"T": ("float32",)})], "acme")
    assert kernels.find(node("Tanh", "ACME", {"T": float64})) is None


def test_errors_name_the_devices_for_which_a_kernel_can_be_generated() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]))
    assert kernels.device_types("Tanh") == ["ACME"]


def test_a_plugin_that_was_taken_out_generates_no_kernels() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]), "acme")
    kernels.find(node("Tanh", "ACME"))
    kernels.unregister("acme")
    assert [kernels.find(node(op, "ACME")) for op in ("Tanh", "Exp")] == [None, None]


def test_a_plugin_that_was_taken_out_and_came_back_generates_each_kernel_once() -> None:
    kernels = KernelRegistry()
    for _ in range(2):
        kernels.unregister("acme")
        kernels.add_generator(generator([]), "acme")
    assert len(kernels.kernels("Tanh")) == 1


def test_a_kernel_is_generated_where_that_of_a_plugin_was_taken_out() -> None:
    kernels = KernelRegistry()
    kernels.add_generator(generator([]), "acme")
    kernels.register([KernelDef("Tanh", "ACME", written)], "other")
    kernels.find(node("Tanh", "ACME"))
    kernels.unregister("other")
    found = kernels.find(node("Tanh", "ACME"))
    assert found is not None
    assert found.build is made
