"""What `python -m timberframe` says of ops."""

from __future__ import annotations

import pytest

import timberframe as tf
from timberframe.__main__ import describe_op, main
from timberframe_core.plugin import loader
from timberframe_sdk.reference import reference_kernels


@pytest.mark.parametrize(
    ("op", "traits"),
    [
        ("Slice", []),
        ("Sum", ["reduction = 'sum'"]),
        ("FIFOQueueV2", ["on_host", "resource = 'queue'", "stateful"]),
        ("QueueDequeueV2", ["on_host", "kinds = {'handle': 'queue'}", "blocks", "stateful"]),
    ],
)
def test_traits_of_an_op_are_shown(op: str, traits: list[str]) -> None:
    shown = [line.removeprefix("  trait ") for line in describe_op(op).splitlines() if line.startswith("  trait ")]
    assert shown == traits


def test_dtypes_that_an_op_is_defined_for_are_shown_in_short() -> None:
    lines = [line for line in describe_op("Cast").splitlines() if "defined_for" in line]
    numbers = "all but string, resource, variant"
    assert lines == [f"  trait defined_for = SrcT: {numbers}; DstT: {numbers} | SrcT: string; DstT: string"]


def test_few_dtypes_that_an_op_is_defined_for_are_shown_by_name() -> None:
    assert "  trait defined_for = T: float16 | T: bfloat16 | T: float32" in describe_op("MaxPool3DGradGrad")


def test_kernels_by_reference_are_shown_as_fallbacks(capsys: pytest.CaptureFixture[str]) -> None:
    kernels = loader.registry.kernels
    kernels.register(reference_kernels("ACME", ["Relu"]), "acme")
    try:
        main(["kernels", "Relu", "--device", "acme"])
    finally:
        kernels.unregister("acme")
    assert " fallback  [" in capsys.readouterr().out


def test_a_command_leaves_the_verbosity_of_the_log() -> None:
    before = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        main(["ops", "Add"])
        assert tf.logging.get_verbosity() == tf.logging.INFO
    finally:
        tf.logging.set_verbosity(before)
