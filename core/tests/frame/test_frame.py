"""Graphs of the frame's own ops run, also where TensorFlow's other ops are hidden from import.

`core/tests/test_frame_alone.py` hides them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from timberframe_core.dtypes import bool_, float32, int32
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, NoKernelError, NotFoundError
from timberframe_core.gradients.reverse import gradients
from timberframe_core.graph.apply import apply_op
from timberframe_core.graph.function import FuncGraph, share_captures
from timberframe_core.graph.graph import Graph
from timberframe_core.graphdef.export import export_graph
from timberframe_core.graphdef.importer import import_graph_def
from timberframe_core.graphdef.messages import GraphDef
from timberframe_core.ops.definition import registry
from timberframe_core.plugin import loader
from timberframe_core.runtime.session import Session

from . import device

Run = Callable[..., Any]
HIDDEN = any(getattr(finder, "hides", "") == "timberframe_ops" for finder in sys.meta_path)


def placeholder(dtype: Any = float32, shape: Any = ()) -> Any:
    return apply_op("Placeholder", attrs={"dtype": dtype, "shape": shape})


def function(graph: Graph, name: str, dtypes: Sequence[Any], body: Callable[..., Any]) -> FuncGraph:
    """Returns a function of scalars."""
    made = FuncGraph(name, graph)
    with made.as_default():
        made.finish(body(*[made.add_input(dtype, ()) for dtype in dtypes]))
    return made


def loop(graph: Graph, condition: Callable[..., Any], body: Callable[..., Any], start: Sequence[Any]) -> Any:
    """Returns what loop variables of scalars become."""
    dtypes = [t.dtype for t in start]
    functions = [function(graph, "cond", dtypes, condition), function(graph, "body", dtypes, body)]
    captured = share_captures(functions, len(start))
    functions[1].outputs += functions[1].inputs[len(start) :]
    values = [*start, *captured]
    attrs = {"cond": functions[0], "body": functions[1], "output_shapes": [()] * len(values)}
    return apply_op("StatelessWhile", [values], attrs)[: len(start)]


def constant(value: Any, dtype: Any = float32) -> Any:
    return apply_op("Const", attrs={"value": np.asarray(value, dtype.numpy), "dtype": dtype})


def test_arithmetic_of_fed_values(run: Run) -> None:
    x = placeholder(shape=[None])
    np.testing.assert_array_equal(run(x * 2 + 1, {x: [1, 2]}), [3, 5])


def test_a_variable_keeps_its_value_from_run_to_run(run: Run) -> None:
    handle = apply_op("VarHandleOp", attrs={"dtype": float32, "shape": ()}, name="v")
    read = apply_op("ReadVariableOp", [handle], {"dtype": float32})
    with pytest.raises(FailedPreconditionError, match="'v'"):
        run(read)
    run(apply_op("AssignVariableOp", [handle, 3.0]))
    assert run(read + 1) == 4


def test_a_loop_runs_until_its_condition_is_false(graph: Graph, run: Run) -> None:
    start = [placeholder(int32), constant(0, int32)]
    found = loop(graph, lambda i, _: [i < 5], lambda i, total: [i + 1, total + i], start)
    assert run(found, {start[0]: 1}) == [5, 10]


def test_a_branch_is_chosen_by_a_fed_condition(graph: Graph, run: Run) -> None:
    choice, x = placeholder(bool_), constant(3.0)
    attrs = {
        "then_branch": function(graph, "then", [float32], lambda x: [x + 1]),
        "else_branch": function(graph, "otherwise", [float32], lambda x: [x * 10]),
        "Tout": [float32],
    }
    found = apply_op("StatelessIf", [choice, [x]], attrs)
    assert [run(found, {choice: c}) for c in (True, False)] == [[4], [30]]


def test_a_function_is_called(graph: Graph, run: Run) -> None:
    twice = function(graph, "twice", [float32], lambda x: [x + x])
    assert run(apply_op("PartitionedCall", [[constant(4.0)]], {"Tout": [float32], "f": twice})) == [8]


def test_a_list_is_stacked(run: Run) -> None:
    made = apply_op("TensorListReserve", [np.zeros(0, np.int32), 2], {"element_dtype": float32})
    for i in range(2):
        made = apply_op("TensorListSetItem", [made, i, constant(i + 1.0)])
    stacked = apply_op("TensorListStack", [made, np.zeros(0, np.int32)], {"element_dtype": float32})
    np.testing.assert_array_equal(run(stacked), [1, 2])


def test_an_optional_has_its_value(run: Run) -> None:
    made = apply_op("OptionalFromValue", [[constant(2.0)]])
    assert run(apply_op("OptionalHasValue", [made]))
    attrs = {"output_types": [float32], "output_shapes": [()]}
    assert run(apply_op("OptionalGetValue", [made], attrs)) == [2]


def test_gradients_add_up(run: Run) -> None:
    x = placeholder()
    (grad,) = gradients(x * x + x, x)
    assert run(grad, {x: 3}) == 7


def test_a_gradient_goes_through_a_loop(graph: Graph, run: Run) -> None:
    x = placeholder()
    _, cubed = loop(graph, lambda i, _: [i < 3], lambda i, y: [i + 1, y * x], [constant(0, int32), constant(1.0)])
    (grad,) = gradients(cubed, x)
    assert run(grad, {x: 2}) == 12


def test_a_value_goes_from_one_device_to_another(graph: Graph, run: Run) -> None:
    x = placeholder()
    with graph.device("/device:NUMPY:0"):
        doubled = x + x
    with graph.device("/device:NUMPY:1"):
        found = doubled * doubled
    assert run(found, {x: 3}) == 36


def test_a_graph_that_was_written_gives_the_same_when_it_is_read(graph: Graph, session: Session) -> None:
    x = apply_op("Placeholder", attrs={"dtype": float32, "shape": ()}, name="x")
    apply_op("Identity", [x + 1], name="y")
    import_graph_def(export_graph(graph).SerializeToString(), name="read")
    assert session.run("read/y:0", {"read/x:0": 2}) == 3


def test_shapes_that_do_not_fit_are_refused_when_the_node_is_made(graph: Graph) -> None:
    with pytest.raises(InvalidArgumentError, match=r"AddV2 'sum': .*\(2,\).*\(3,\)"):
        apply_op("AddV2", [np.zeros(2, np.float32), np.zeros(3, np.float32)], name="sum")


def test_a_node_without_a_kernel_is_an_error_that_names_the_devices(run: Run) -> None:
    x = placeholder()
    with pytest.raises(NoKernelError, match=r"Maximum 'most': .*NUMPY"):
        run(apply_op("Maximum", [x, 1.0], name="most"), {x: 0})


def test_kernels_of_ops_that_are_not_there_leave_the_others_working(session: Session) -> None:
    ops = {k.op for k in loader.registry.plugins[device.NAME].manager.hook.timberframe_kernels()[0]}
    assert {"MatMul", "AddV2"} <= ops
    assert registry.knows("MatMul") is not HIDDEN
    assert device.NAME not in loader.registry.failures()


@pytest.mark.skipif(not HIDDEN, reason="the other ops are there")
def test_an_operator_whose_op_is_not_there_says_which_package_is_missing(graph: Graph) -> None:
    x = placeholder(shape=[2, 2])
    with pytest.raises(NotFoundError, match=r"op MatMul: not registered; .*package timberframe-core .*timberframe_ops"):
        x @ x


@pytest.mark.skipif(not HIDDEN, reason="the other ops are there")
def test_a_graph_with_an_op_that_is_not_there_names_it(graph: Graph) -> None:
    message: Any = GraphDef()
    message.node.add(name="x", op="Softmax")
    with pytest.raises(NotFoundError, match=r"no op is registered as Softmax.*timberframe_ops"):
        import_graph_def(message)
