"""slim.summaries: their tags and values, and what they print."""

from __future__ import annotations

import pytest

import timberframe as tf

summaries = tf.contrib.slim.summaries


def written(session: tf.Session) -> dict[str, tf.summary.Summary.Value]:
    """Returns the values of all summaries of the graph, by tag."""
    merged = tf.summary.Summary.FromString(session.run(tf.summary.merge_all()))
    return {value.tag: value for value in merged.value}


def test_names_are_those_of_the_operations_after_the_prefix(session: tf.Session) -> None:
    a, b = (tf.constant(float(i), name=name) for i, name in enumerate("ab"))
    summaries.add_scalar_summaries([a, b], prefix="losses")
    summaries.add_scalar_summary(b, "total")
    assert {tag: value.simple_value for tag, value in written(session).items()} == {
        "losses/a": 0, "losses/b": 1, "total": 1,
    }  # fmt: skip


def test_histograms_pictures_and_parts_that_are_zero(session: tf.Session) -> None:
    x = tf.constant([[0.0, 1.0, 0.0, 0.0]], name="x")
    pictures = tf.zeros([1, 2, 2, 1], name="pictures")
    summaries.add_histogram_summaries([x], prefix="all")
    summaries.add_zero_fraction_summaries([x])
    summaries.add_image_summaries([pictures], prefix="shown")
    found = written(session)
    assert found["all/x"].histo.num == 4
    assert found["x/Fraction_of_Zero_Values"].simple_value == 0.75
    assert found["shown/pictures/image/0"].image.height == 2


def test_a_printed_summary_is_written_once(session: tf.Session, capfd: pytest.CaptureFixture[str]) -> None:
    summaries.add_scalar_summary(tf.constant(2.5), "loss", print_summary=True)
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1
    assert written(session)["loss"].simple_value == 2.5
    assert capfd.readouterr().err == "loss[2.5]\n"
