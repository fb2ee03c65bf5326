"""What `python -m timberframe` says of ops."""

from __future__ import annotations

import pytest

import timberframe as tf
from timberframe.__main__ import describe_op, main


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


def test_kernels_by_reference_are_shown_as_fallbacks(capsys: pytest.CaptureFixture[str]) -> None:
    main(["kernels", "Dequantize", "--device", "cpu"])
    assert " fallback  [" in capsys.readouterr().out


def test_a_command_leaves_the_verbosity_of_the_log() -> None:
    before = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        main(["ops", "Add"])
        assert tf.logging.get_verbosity() == tf.logging.INFO
    finally:
        tf.logging.set_verbosity(before)
