"""What `Session.explain` draws: as SVG, as a page, and in notebooks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.runtime import plan_picture
from timberframe_core.runtime.explain import Explanation, StageReport
from timberframe_core.runtime.memory_picture import MOST_BARS, live_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def explained() -> Iterator[Explanation]:
    """The plan of `b`, the tanh of what a variable and a feed `<x>` add up to."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        w = tf.get_variable("w", [3])
        yield session.explain(tf.tanh(tf.add(x, w, name="a"), name="b"), {x: np.ones((2, 3))})


def titles(plan: Explanation) -> list[str]:
    return [t.text or "" for t in ET.fromstring(plan.as_svg()).iter(f"{SVG}title")]


def test_edges_say_what_goes_from_node_to_node(explained: Explanation) -> None:
    assert ("a", "b", "float32 (2, 3)") in explained.edges


def test_each_node_of_a_stage_is_drawn_and_says_why_it_is_there(explained: Explanation) -> None:
    found = titles(explained)
    (tanh,) = (t for t in found if t.startswith("Tanh 'b'"))
    reason = next(p.reason for p in explained.placements if p.node == "b")
    assert reason in tanh
    assert "kernel: " in tanh


def test_what_is_fed_or_kept_is_drawn_above_what_reads_it(explained: Explanation) -> None:
    root = ET.fromstring(explained.as_svg())
    nodes = [g for g in root.iter(f"{SVG}g") if (g.get("class") or "").startswith("node")]
    tops = {(g.find(f"{SVG}title").text or "").split("\n")[0]: float(g.find(f"{SVG}rect").get("y")) for g in nodes}  # type: ignore[union-attr, arg-type] # both are in each
    assert tops["x"] < tops["AddV2 'a'"] < tops["Tanh 'b'"]


def test_each_device_has_a_lane_and_each_stage_a_frame(explained: Explanation) -> None:
    text = explained.as_svg()
    for device in {s.device for s in explained.stages}:
        assert f">{device}</text>" in text
    assert text.count('fill-opacity="0.07"') == len(explained.stages)


def test_what_another_stage_makes_is_named_in_the_frame_that_reads_it_and_at_the_line_between() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        text = tf.strings.as_string(tf.tanh(x, name="a"), name="text")
        plan = session.explain(text, {x: np.ones(2)})
    assert len(plan.stages) == 2
    assert ">from 0</text>" in plan.as_svg()
    assert "0 to 1\na: float32 (2,)" in titles(plan)


def test_a_large_plan_is_drawn_stage_by_stage(monkeypatch: pytest.MonkeyPatch, explained: Explanation) -> None:
    monkeypatch.setattr(plan_picture, "MOST_NODES", 1)
    nodes = re.findall(r'class="node d\d"', explained.as_svg())
    assert len(nodes) < len(re.findall("Tanh|AddV2|ReadVariableOp|input", str(explained.edges))) + 3
    assert not any(t.startswith("Tanh 'b'") for t in titles(explained))


def test_a_plan_whose_shapes_are_not_known_is_drawn_without_memory() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        plan = session.explain(tf.tanh(tf.placeholder(tf.float32, [None]), name="b"))
    assert "It is known when shapes are." in plan.as_html()
    assert any(t.startswith("Tanh 'b'") for t in titles(plan))


def test_the_bytes_that_are_alive_while_each_node_runs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [10, 10])
        a = tf.matmul(x, x, name="a")  # 400 bytes, read by c
        b = tf.reduce_sum(a, 0, name="b")  # 40, the result
        c = tf.matmul(a, x, name="c")  # 400
        d = tf.reduce_max(c, name="d")  # 4, the result
        plan = session.explain([b, d], {x: np.zeros((10, 10))})
    assert dict(plan.stages[0].live_bytes) == {"a": 400, "b": 440, "c": 840, "d": 444}
    assert "c: 840 bytes" in plan.as_html()


def test_many_nodes_are_drawn_as_fewer_bars() -> None:
    stage = StageReport("/device:CPU:0", 0, (), "cluster", live_bytes=tuple((f"n{i}", i) for i in range(1000)))
    text = live_svg([stage])
    assert text.count("<rect") <= MOST_BARS
    assert "n999: 999 bytes" in text


def test_names_are_texts_in_svg_and_page() -> None:
    plan = Explanation(("<script>:0",), (), (), skipped_rewrites=("<b>",))
    assert "<script>:0" not in plan.as_svg()
    assert "<b>" not in plan.as_html()


def test_the_page_has_passes_placement_and_kernels(explained: Explanation) -> None:
    text = explained.as_html()
    for heading in ("Graph", "Memory of each stage, in running order", "Passes", "Placement", "Kernels"):
        assert f"<h2>{heading}</h2>" in text
    assert not re.findall(r'(?:src|href)="(?!#)', text)


def test_notebooks_show_the_graph_and_text_stays_the_default(explained: Explanation) -> None:
    assert explained._repr_html_().startswith('<div style="overflow-x:auto"><svg')
    assert str(explained).startswith("plan for b:0")
