"""Pages of the core in a browser; those of reports have a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.drawing.trace import trace_page

pytestmark = pytest.mark.slow


@pytest.fixture
def plan(browser: Any, tmp_path: Path) -> Any:
    """The page of a plan with two nodes, `a` and `b`."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        plan = session.explain(tf.tanh(tf.add(x, 1.0, name="a"), name="b"), {x: np.ones((2, 3))})
    path = tmp_path / "plan.html"
    path.write_text(plan.as_html(), encoding="utf-8")
    browser.open(path)
    return browser


def test_the_page_of_a_plan_opens_without_an_error_or_a_request(plan: Any) -> None:
    assert plan.errors == []


def test_placement_reasons_show_when_a_node_has_the_focus(plan: Any) -> None:
    plan.evaluate("document.querySelector('.node[aria-label^=Tanh]').focus()")
    plan.settle()
    tip = "document.getElementById('tip')"
    assert plan.evaluate(f"{tip}.textContent").startswith("Tanh 'b'\non /device:")
    assert plan.evaluate(f"getComputedStyle({tip}).display") == "block"


def test_search_leaves_the_rows_with_the_words(plan: Any) -> None:
    plan.evaluate("document.getElementById('search').value = 'tanh'")
    plan.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
    shown = "[...document.querySelectorAll('tbody tr')].filter((r) => !r.hidden).map((r) => r.textContent)"
    found = plan.evaluate(shown)
    assert found
    assert all("tanh" in row.lower() for row in found)


def test_the_drawing_follows_the_switch(plan: Any) -> None:
    fill = "getComputedStyle(document.querySelector('.node rect')).fill"
    before = plan.evaluate(fill)
    plan.evaluate("document.getElementById('theme').click()")
    assert plan.evaluate(fill) != before


@pytest.fixture
def trace(browser: Any, tmp_path: Path) -> Any:
    """The page of a trace of a run of `a` and `b`."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        b = tf.tanh(tf.add(x, 1.0, name="a"), name="b")
        metadata, feeds = tf.RunMetadata(), {x: np.ones((2, 3))}
        session.run(b, feeds)  # the first run takes so long that its nodes would share a pixel
        session.run(b, feeds, tf.RunOptions(trace=True), metadata)
    path = tmp_path / "trace.html"
    metadata.save_trace(path)
    browser.open(path)
    return browser


def test_the_page_of_a_trace_draws_its_events_without_an_error(trace: Any) -> None:
    assert trace.errors == []
    tips = trace.evaluate(
        "[...document.querySelectorAll('#timeline .event')].map((e) => e.dataset.tip.split('\\n')[0])"
    )
    assert {"a", "b"} <= set(tips)


def test_a_timeline_is_zoomed_by_buttons_and_keys(trace: Any) -> None:
    window = "document.getElementById('window').textContent"
    whole = trace.evaluate(window)
    trace.evaluate("document.getElementById('nearer').click()")
    assert trace.evaluate(window) != whole
    trace.evaluate("document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', { key: '0' }))")
    assert trace.evaluate(window) == whole


def test_a_timeline_of_a_whole_run_begins_at_0_whatever_its_clock_says(browser: Any, tmp_path: Path) -> None:
    # In float64, 1383.7 + 2776.7 less its own length is smaller than 1383.7.
    event = {"name": "a", "ph": "X", "ts": 1383.7, "dur": 2776.7, "tid": 1}
    path = tmp_path / "trace.html"
    path.write_text(trace_page({"traceEvents": [event]}), encoding="utf-8")
    browser.open(path)
    browser.evaluate("document.getElementById('all').click()")
    assert browser.evaluate("document.getElementById('window').textContent") == "0 ns to 2.78 ms of 2.78 ms"


def test_search_of_a_trace_leaves_the_events_with_the_words(trace: Any) -> None:
    trace.evaluate("document.getElementById('search').value = 'tanh'")
    trace.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
    assert trace.evaluate("[...document.querySelectorAll('#events tbody th')].map((e) => e.textContent)") == ["b"]
