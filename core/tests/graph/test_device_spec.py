"""Device strings and how nested device blocks merge."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

import timberframe as tf
from timberframe_core.graph.device_spec import canonical_device, merge_device


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("/acme:0", "/device:ACME:0"),
        ("ACME:1", "/device:ACME:1"),
        ("/device:acme:2", "/device:ACME:2"),
        ("/acme", "/device:ACME:*"),
        ("/device:ACME:*", "/device:ACME:*"),
        ("/job:worker/replica:1/task:2/acme:3", "/job:worker/replica:1/task:2/device:ACME:3"),
        ("/task:2/job:worker", "/job:worker/task:2"),
    ],
)
def test_strings_have_one_canonical_form(text: str, canonical: str) -> None:
    assert canonical_device(text) == canonical
    assert canonical_device(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/acme:one", "'one' is not a number"),
        ("/job", "part 'job' is malformed"),
        ("/task:-1", "'-1' is not a number"),
        ("/device:ACME:0:1", "part 'device:ACME:0:1' is malformed"),
        ("/acme:0/other:1", "names its device_type twice"),
        ("/job:a/job:b", "names its job twice"),
        ("/?:0", "is malformed; it must look like"),
    ],
)
def test_malformed_strings_are_refused(text: str, words: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"device '.*': .*{words}"):
        canonical_device(text)


@pytest.mark.parametrize(
    ("inner", "outer", "merged"),
    [
        ("/acme:1", "/job:a/task:3", "/job:a/task:3/device:ACME:1"),
        ("/acme", "/other:1", "/device:ACME:1"),
        ("", "/acme:1", "/device:ACME:1"),
        ("/job:b", "/job:a/acme:0", "/job:b/device:ACME:0"),
    ],
)
def test_inner_parts_win(inner: str, outer: str, merged: str) -> None:
    assert merge_device(inner, outer) == merged


@pytest.mark.parametrize(
    ("blocks", "device"),
    [
        (["/job:x", "/acme:1"], "/job:x/device:ACME:1"),
        (["/job:x", None, "/acme:1"], "/device:ACME:1"),
        (["/job:x", "", "/acme:1"], "/job:x/device:ACME:1"),
        (["/acme:1", lambda op: "/other:0"], "/device:OTHER:0"),
        ([lambda op: "/other:0", "/acme:1"], "/device:OTHER:0"),
        (["/job:y/acme:1", lambda op: op.device + "/task:3"], "/job:y/task:3/device:ACME:1"),
        ([lambda op: None, "/acme:1"], "/device:ACME:1"),
        ([tf.DeviceSpec(device_type="acme", device_index=2)], "/device:ACME:2"),
    ],
)
def test_blocks_nest_as_in_tensorflow(blocks: list[str | Callable[[tf.Operation], str] | None], device: str) -> None:
    with tf.Graph().as_default(), ExitStack() as stack:
        for block in blocks:
            stack.enter_context(tf.device(block))
        assert tf.constant(1).device == device


def test_spec_matches_what_its_parts_allow() -> None:
    whole = tf.DeviceSpec.from_string("/job:localhost/replica:0/task:0/device:ACME:1")
    assert tf.DeviceSpec.from_string("/acme").matches(whole)
    assert not tf.DeviceSpec.from_string("/acme:0").matches(whole)


def test_parts_change_in_place() -> None:
    spec = tf.DeviceSpec.from_string("/job:worker/task:1")
    spec.merge_from(tf.DeviceSpec(device_type="acme", device_index=2))
    assert spec.to_string() == "/job:worker/task:1/device:ACME:2"
    spec.job, spec.device_type = "ps", "cpu"
    assert spec.to_string() == "/job:ps/task:1/device:CPU:2"
    assert spec == tf.DeviceSpec.from_string("/job:ps/task:1/device:CPU:2")
    assert spec.parse_from_string("/job:other") is spec
    assert spec.to_string() == "/job:other"
    assert tf.DeviceSpec.from_string("/job:worker/task:1").task == 1, "what another call gave did not change"
    with pytest.raises(TypeError, match="dev is '/job:a' of type str"):
        spec.merge_from("/job:a")
