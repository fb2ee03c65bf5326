"""Known differences from TensorFlow, and programs whose results are defined."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.fuzz.build import build
from timberframe_conformance.fuzz.differences import UNDEFINED, copy_inputs, differences, incomparable, is_explained
from timberframe_conformance.fuzz.expected import evaluate
from timberframe_conformance.fuzz.program import Program, Step
from timberframe_conformance.fuzz.script import script
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry

SCALAR_SHAPE = "ValueError: Shape must be rank 1 but is rank 0 for '{{node %s}} = Reshape[T=DT_FLOAT]'"


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def split(lengths: Any) -> None:
    apply_op("SplitV", [np.zeros(3, np.float32), lengths, 0], {"num_split": 2})


def known_values(tensor: Any) -> Any:
    return evaluate([tensor], {})[0]


def test_at_most_ten_differences_are_listed() -> None:
    assert len(differences()) <= 10


def test_each_difference_has_a_reason_and_a_source() -> None:
    assert all(d.reason and d.source for d in differences())


def test_each_difference_names_registered_ops() -> None:
    named = {op for d in differences() for op in (*(o.split()[0] for o in d.ops), *d.errors)}
    assert all(registry.get(op) for op in named)


def test_error_of_a_listed_node_is_explained(graph: tf.Graph) -> None:
    tf.reshape(tf.constant([1.0]), [1], name="a")
    assert is_explained(graph, SCALAR_SHAPE % "a")


def test_the_same_message_of_another_node_is_not_explained(graph: tf.Graph) -> None:
    tf.reshape(tf.constant([1.0]), [1], name="a")
    assert not is_explained(graph, SCALAR_SHAPE % "a_1")


def test_another_message_of_a_listed_node_is_not_explained(graph: tf.Graph) -> None:
    tf.reshape(tf.constant([1.0]), [1], name="a")
    assert not is_explained(graph, "ValueError: Cannot reshape for '{{node a}}'")


def test_undefined_result_is_explained_for_the_dtype_that_makes_it(graph: tf.Graph) -> None:
    split(np.int8([1, 2]))
    assert is_explained(graph, UNDEFINED)


def test_defined_result_of_the_same_op_is_compared(graph: tf.Graph) -> None:
    split(np.int32([1, 2]))
    assert not is_explained(graph, UNDEFINED)


def test_results_that_depend_on_a_differing_output_are_not_compared(graph: tf.Graph) -> None:
    whole = tf.identity(apply_op("Round", [np.int32([3])]))
    half = tf.identity(apply_op("Round", [np.float32([2.5])]))
    assert {whole, half} & incomparable(graph) == {whole}


def test_condition_on_elements_asks_for_the_first_input(graph: tf.Graph) -> None:
    sizes = np.int32([1, 1, 1, 1])
    filters = [
        apply_op("DepthwiseConv2dNativeBackpropFilter", [x, sizes, x], {"strides": (1, 1, 1, 1), "padding": "SAME"})
        for x in (np.ones((0, 2, 2, 1), np.float32), np.ones((1, 2, 2, 1), np.float32))
    ]
    assert set(filters) & incomparable(graph) == {filters[0]}


def test_order_of_nan_is_not_compared(graph: tf.Graph) -> None:
    tops = [tf.nn.top_k(np.float32(x), 1).indices for x in ([1.0, np.nan], [1.0, 2.0])]
    assert set(tops) & incomparable(graph, known_values) == {tops[0]}


def test_loop_around_a_differing_output_is_not_compared(graph: tf.Graph) -> None:
    rows = tf.map_fn(lambda x: apply_op("Round", [x]), tf.constant([3]))
    assert rows in incomparable(graph)


def test_input_that_tensorflow_changes_is_copied(graph: tf.Graph) -> None:
    apply_op("InplaceAdd", [tf.placeholder(tf.float32, [1], "x"), [0], [1.0]], name="add")
    message = graph.as_graph_def()
    copy_inputs(message)
    made = {node.name: node for node in message.node}
    copy = made[made["add"].input[0]]
    assert (copy.op, list(copy.input)) == ("DeepCopy", ["x"])


def test_copies_in_loops_give_a_graph_that_runs(graph: tf.Graph) -> None:
    rows = tf.map_fn(lambda x: apply_op("InplaceAdd", [x, [0], [1.0]]), tf.constant([[3.0]]))
    message = graph.as_graph_def()
    copy_inputs(message)
    with tf.Graph().as_default():
        tf.import_graph_def(message, name="")
        with tf.Session() as session:
            assert session.run(rows.name).tolist() == [[4.0]]


def updated_variable(updates: int) -> Program:
    """Returns a variable before and after each of its updates, fetched from the last to the first."""
    steps = (Step("variable", value=np.float32([1.0])), Step("const", value=np.float32([2.0])))
    update = Step("assign", "assign_add", ((0, 0), (1, 0)))
    return Program((*steps, *(update,) * updates), tuple((i, 0) for i in reversed([0, *range(2, 2 + updates)])))


def ancestors(op: Any) -> set[Any]:
    found: set[Any] = set()
    waiting = [op]
    while waiting:
        op = waiting.pop()
        before = {*(t.op for t in op.inputs), *op.control_inputs} - found
        found |= before
        waiting.extend(before)
    return found


def test_each_update_of_a_variable_waits_for_the_read_before() -> None:
    reads = [t.op for t in reversed(build(updated_variable(2)).fetches)]
    assert all(first in ancestors(second) for first, second in pairwise(reads))


def test_script_of_a_finding_orders_updates_and_reads(capsys: pytest.CaptureFixture[str]) -> None:
    text = script(updated_variable(2), "updates")
    with tf.Graph().as_default() as graph:
        exec(compile(text, "script", "exec"), {})
        updates = [op for op in graph.get_operations() if op.type == "AssignAddVariableOp"]
    assert [len([a for a in ancestors(u) if a.type == "ReadVariableOp"]) for u in updates] == [1, 2]


@pytest.mark.parametrize("op", ["MaxPoolGradGrad", "MaxPoolGradGradV2"])
@pytest.mark.parametrize(("stride", "known"), [(1, True), (2, False)])
def test_second_gradient_of_max_pool_differs_only_where_its_input_may_become_its_output(
    graph: tf.Graph, op: str, stride: int, known: bool
) -> None:
    x, y = tf.placeholder(tf.float32, [1, 4, 4, 1]), tf.placeholder(tf.float32, [1, 4 // stride, 4 // stride, 1])
    ksize, strides = [1, 2, 2, 1], [1, stride, stride, 1]
    if op.endswith("V2"):
        result = apply_op(op, [x, y, x, ksize, strides], {"padding": "SAME"})
    else:
        result = apply_op(op, [x, y, x], {"ksize": ksize, "strides": strides, "padding": "SAME"})
    assert (result in incomparable(graph)) == known


@pytest.mark.parametrize("op", ["MaxPool", "MaxPoolV2"])
@pytest.mark.parametrize(
    ("x", "channels", "known"), [([1.0, np.nan], 2, True), ([1.0, np.nan], 1, False), ([1.0, 2.0], 2, False)]
)
def test_order_of_nan_is_not_compared_where_windows_span_channels(
    graph: tf.Graph, op: str, x: Any, channels: int, known: bool
) -> None:
    window = [1, 1, 1, channels]
    inputs, attrs = [np.float32([[[x]]])], {"ksize": window, "strides": window}
    if op == "MaxPoolV2":
        inputs, attrs = [*inputs, *map(np.int32, attrs.values())], {}
    result = apply_op(op, inputs, {**attrs, "padding": "VALID"})
    assert (result in incomparable(graph, known_values)) == known


@pytest.mark.parametrize(
    ("op", "inputs", "known"),
    [
        ("Elu", [[-1e-4, 3.0]], True),
        ("Elu", [[-2.0, 3.0]], False),
        ("Selu", [[-1e-4]], True),
        ("Selu", [[-1.0]], False),
        ("Erfinv", [[1.00000012]], True),
        ("Erfinv", [[0.5]], False),
        ("Polygamma", [[1.0], [-7.3]], True),
        ("Polygamma", [[1.0], [0.5]], False),
        ("RandomGammaGrad", [[3.0], [np.inf]], True),
        ("RandomGammaGrad", [[3.0], [2.0]], False),
        ("DivNoNan", [np.complex64([1.0]), np.complex64([1e-20j])], True),
        ("DivNoNan", [np.complex64([1.0]), np.complex64([0.0])], False),
        ("DivNoNan", [[1.0], [1e-20]], False),
        ("Log", [np.complex64([1e20])], True),
        ("Log", [np.complex64([1e10])], False),
    ],
)
def test_results_are_left_out_only_for_numbers_that_tensorflow_gets_wrong(
    graph: tf.Graph, op: str, inputs: Any, known: bool
) -> None:
    result = apply_op(op, [x if isinstance(x, np.ndarray) else np.float32(x) for x in inputs])
    assert (result in incomparable(graph, known_values)) == known


def test_emptiness_is_asked_of_the_value_where_the_shape_is_unknown(graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32)
    result = apply_op("Conv2DBackpropFilter", [x, [3, 3, 1, 1], x], {"strides": (1, 1, 1, 1), "padding": "SAME"})
    values = [np.ones(shape, np.float32) for shape in ((1, 0, 2, 1), (1, 2, 2, 1))]
    assert [result in incomparable(graph, lambda _, value=value: value) for value in values] == [True, False]


def test_unfilled_vectors_are_not_compared(graph: tf.Graph) -> None:
    results = [apply_op("Svd", [np.ones((2, 2), np.float32)], {"compute_uv": uv})[1] for uv in (False, True)]
    assert set(results) & incomparable(graph) == {results[0]}


def test_error_of_what_depends_on_a_differing_output_is_explained(graph: tf.Graph) -> None:
    u = apply_op("Svd", [np.ones((2, 2), np.float32)], {"compute_uv": False})[1]
    tf.reduce_sum(tf.identity(u), 0, name="total")
    assert is_explained(graph, "InvalidArgumentError: 'total' Invalid reduction dimension")


def test_error_of_what_depends_on_another_output_is_not_explained(graph: tf.Graph) -> None:
    s = apply_op("Svd", [np.ones((2, 2), np.float32)], {"compute_uv": False})[0]
    tf.reduce_sum(tf.identity(s), 0, name="total")
    assert not is_explained(graph, "InvalidArgumentError: 'total' Invalid reduction dimension")


def fractional(graph: tf.Graph) -> Any:
    x = tf.ones([1, 6, 7, 2])
    return apply_op("FractionalAvgPool", [x], {"pooling_ratio": (1.0, 1.44, 1.73, 1.0), "deterministic": True})


def test_error_of_shapes_that_depend_on_a_wrongly_inferred_one_is_explained(graph: tf.Graph) -> None:
    tf.identity(fractional(graph)[1], name="rows")
    assert is_explained(graph, "ValueError: Dimensions must be equal, but are 4 and 5 for '{{node rows}}'")


def test_output_whose_shape_alone_is_wrongly_inferred_is_compared(graph: tf.Graph) -> None:
    assert fractional(graph)[1] not in incomparable(graph)
