"""tf.logging."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import timberframe as tf


@pytest.fixture(autouse=True)
def default_verbosity() -> Iterator[None]:
    tf.logging.set_verbosity(tf.logging.WARN)
    yield
    tf.logging.set_verbosity(tf.logging.WARN)


def test_messages_below_the_verbosity_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    tf.logging.info("quiet")
    tf.logging.warn("loud %d", 1)
    assert caplog.messages == ["loud 1"]


def test_verbosity_may_be_a_name(caplog: pytest.LogCaptureFixture) -> None:
    tf.logging.set_verbosity("INFO")
    tf.logging.info("heard")
    assert caplog.messages == ["heard"]


def test_unknown_verbosity_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="level 'LOUD' is not known"):
        tf.logging.set_verbosity("LOUD")


def test_records_name_the_callers_line(caplog: pytest.LogCaptureFixture) -> None:
    tf.logging.error("here")
    tf.logging.log(tf.logging.ERROR, "and here")
    assert {record.filename for record in caplog.records} == {"test_logging.py"}


def test_messages_go_to_standard_error_without_configuration(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    (handler,) = tf.logging.get_logger().handlers
    monkeypatch.setattr(handler, "stream", __import__("sys").stderr)
    tf.logging.warning("to stderr")
    assert "WARNING:timberframe:to stderr" in capsys.readouterr().err


def test_every_n_and_first_n(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        tf.logging.log_every_n(tf.logging.ERROR, "every other", 2)
        tf.logging.log_first_n(tf.logging.ERROR, "first two", 2)
    assert (caplog.messages.count("every other"), caplog.messages.count("first two")) == (3, 2)


def test_what_a_program_asks_for_by_a_setting_is_shown_whatever_the_verbosity(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with tf.Graph().as_default() as graph:
        y = tf.add(tf.placeholder(tf.float32, [2], name="x"), 1.0, name="y")
    with tf.Session(graph=graph, config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(y, {"x:0": [1.0, 2.0]})
    assert [m.rpartition(" (")[0] for m in caplog.messages] == ["y: (AddV2): /device:CPU:0"]
