"""Graphs that no program writes: each is refused with an OpError when it is imported, or when it is to run."""

from __future__ import annotations

from typing import Any

import pytest

import timberframe as tf
from timberframe_core.graph.apply import apply_op

Write = Any
Invalid, Exhausted = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError


def old_loop(write: Write) -> Write:
    write.const("zero", 0).const("limit", 3)("Enter", "i", "zero", frame_name="w")
    write("Enter", "end", "limit", frame_name="w", is_constant=True)("Merge", "now", "i", "next", N=2)
    write("Less", "less", "now", "end")("LoopCond", "more", "less")("Switch", "if", "now", "more")
    write.const("one", 1, "^if")("AddV2", "new", "if:1", "one")("NextIteration", "next", "new")
    return write("Exit", "out", "if")


def functional_loop() -> Any:
    with tf.Graph().as_default() as graph:
        start = [tf.constant(0), tf.constant(1.0)]
        tf.while_loop(lambda i, x: tf.less(i, 3), lambda i, x: (i + 1, x * 2.0), start, name="loop")
        return graph.as_graph_def()


def function_of(message: Any, word: str) -> Any:
    return next(f for f in message.library.function if word in f.signature.name)


def imported(message: Any) -> tf.Graph:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
    return graph


def run_all(message: Any) -> Any:
    graph = imported(message)
    with tf.Session(graph=graph) as session:
        return session.run(graph.get_operations()[-1].outputs)


# Sizes


def test_size_of_which_memory_has_no_bytes_is_refused(write: Write) -> None:
    write.const("c", 1.0)
    write.message.node[0].attr["value"].tensor.tensor_shape.dim.add(size=2**62)
    with pytest.raises(Invalid, match=r"attr value: .*over 2\^63 - 1 bytes"):
        write.graph()


def test_shape_of_more_dimensions_than_a_tensor_has_is_refused(write: Write) -> None:
    write("Placeholder", "x")
    for _ in range(5000):
        write.message.node[0].attr["shape"].shape.dim.add(size=-1)
    with pytest.raises(Invalid, match="has 5000 dimensions; a shape has at most 254"):
        write.graph()


def test_constant_of_more_dimensions_than_an_array_has_is_refused(write: Write) -> None:
    write.const("c", 1.0)
    for _ in range(100):
        write.message.node[0].attr["value"].tensor.tensor_shape.dim.add(size=1)
    with pytest.raises(tf.errors.UnimplementedError, match="has 100 dimensions; tensors have at most 64"):
        write.graph()


@pytest.mark.parametrize("op", ["Reshape", "BroadcastTo"])
def test_shape_that_a_huge_vector_is_to_spell_takes_no_memory(write: Write, op: str) -> None:
    write("Placeholder", "x", dtype=tf.float32)("Placeholder", "sizes", shape=tf.TensorShape([2**40]))
    write(op, "y", "x", "sizes", T=tf.float32)
    graph = write.graph()  # as in TensorFlow, which finds it when the node runs
    assert graph.get_tensor_by_name("y:0").shape.rank is None


def test_more_inputs_than_there_are_take_no_memory(write: Write) -> None:
    write.const("c", 1.0)("Pack", "p", "c", T=tf.float32, N=2**40)
    with pytest.raises(Invalid, match=f"Pack 'p': attr N is {2**40}; a list of inputs or outputs has at most 65536"):
        write.graph()


def test_list_of_more_elements_than_memory_holds_is_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.placeholder(tf.int32, [])
        made = apply_op("TensorListReserve", [tf.constant([2]), size], {"element_dtype": tf.float32})
        length = apply_op("TensorListLength", [made])
        assert session.run(length, {size: 5}) == 5
        with pytest.raises(tf.errors.ResourceExhaustedError, match="2147483647 further elements; it has at most"):
            session.run(length, {size: 2**31 - 1})


# Dtypes


def test_attr_that_holds_the_type_of_a_reference_is_refused(write: Write) -> None:
    write.const("c", b"text")
    attrs = write.message.node[0].attr
    attrs["dtype"].type = attrs["value"].tensor.dtype = 107  # DT_STRING_REF
    with pytest.raises(Invalid, match=r"Const 'c': attr dtype: it is string_ref; attrs hold no types of references"):
        write.graph()


# Names


def test_number_of_an_output_in_other_digits_is_no_number(write: Write) -> None:
    write.const("c", 1.0)("Identity", "y", "c:\u00b2", T=tf.float32)
    with pytest.raises(Invalid, match="input 'c:\u00b2' is not in the GraphDef"):
        write.graph()


@pytest.mark.parametrize("name", ["x\n", "x y"])
def test_name_of_an_operation_that_is_none_is_refused(write: Write, name: str) -> None:
    with pytest.raises(Invalid, match=r"operation name .* is not valid"):
        write.const(name, 1.0).graph()


def test_slash_at_the_end_of_a_name_survives_a_round_trip(write: Write) -> None:
    message = write.const("x/", 1.0)("Identity", "y", "x/", T=tf.float32).graph().as_graph_def()
    assert [n.name for n in imported(message).as_graph_def().node] == ["x/", "y"]


# Cycles


def test_control_input_on_a_cycle_is_refused(write: Write) -> None:
    old_loop(write)
    next(n for n in write.message.node if n.name == "now").input.append("^next")
    with pytest.raises(Invalid, match=r"form a cycle"):
        write.graph()


def test_control_input_on_a_cycle_within_a_function_is_refused(write: Write) -> None:
    message = functional_loop()
    nodes = function_of(message, "body").node_def
    nodes[0].input.append(f"^{nodes[-1].name}")
    nodes[-1].input.append(f"^{nodes[0].name}")
    with pytest.raises(Invalid, match=r"form a cycle"):
        imported(message)


# Functions that do not suit who runs them


def test_body_of_fewer_results_than_loop_variables_is_refused() -> None:
    message = functional_loop()
    results = function_of(message, "body").signature.output_arg
    results.remove(results[-1])
    with pytest.raises(Invalid, match=r"While 'loop.*': body '.*' has 1 results \(int32\); 2 \(int32, float32\) are"):
        run_all(message)


def test_body_of_fewer_arguments_than_loop_variables_is_refused() -> None:
    message = functional_loop()
    arguments = function_of(message, "cond").signature.input_arg
    arguments.remove(arguments[-1])
    with pytest.raises(Invalid, match=r"cond '.*' has 1 arguments \(int32\); 2 \(int32, float32\) are required"):
        run_all(message)


def test_body_whose_results_have_other_dtypes_is_refused() -> None:
    message = functional_loop()
    results = function_of(message, "body").signature.output_arg
    function_of(message, "body").ret[results[0].name] = function_of(message, "body").ret[results[1].name]
    with pytest.raises(Invalid, match=r"body '.*' has 2 results \(float32, float32\); 2 \(int32, float32\) are"):
        run_all(message)


def test_function_that_is_not_there_is_named() -> None:
    message = functional_loop()
    message.library.function.remove(function_of(message, "body"))
    with pytest.raises(tf.errors.NotFoundError, match=r"While 'loop.*': function '.*body.*' is not in the graph's"):
        run_all(message)


def test_gradient_of_a_loop_whose_body_does_not_suit_is_refused() -> None:
    message = functional_loop()
    results = function_of(message, "body").signature.output_arg
    results.remove(results[-1])
    graph = imported(message)
    loop = next(op for op in graph.get_operations() if "While" in op.type)
    with graph.as_default(), pytest.raises(Invalid, match=r"has 1 results \(int32\)"):
        tf.gradients(loop.outputs[1], loop.inputs[1])


def test_nodes_that_no_fetch_needs_may_run_functions_that_do_not_suit() -> None:
    message = functional_loop()
    results = function_of(message, "body").signature.output_arg
    results.remove(results[-1])
    with tf.Session(graph=imported(message)) as session:
        assert session.run("Const:0") == 0


# Depth


def chain(depth: int, calls: int) -> Any:
    """Functions that each call the next one so many times."""
    message = tf.GraphDef()
    message.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    call(message.node.add(name="y", op="PartitionedCall", input=["x"]), "f0")
    for i in range(depth):
        function = message.library.function.add()
        function.signature.name = f"f{i}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        last = "x"
        for k in range(calls if i < depth - 1 else 0):
            call(function.node_def.add(name=f"n{k}", op="PartitionedCall", input=[last]), f"f{i + 1}")
            last = f"n{k}:output:0"
        function.ret["y"] = last
    return message


def call(node: Any, callee: str) -> None:
    node.attr["f"].func.name = callee
    for key in ("Tin", "Tout"):
        node.attr[key].list.type.append(1)


def test_functions_that_call_each_other_a_thousand_deep_are_imported() -> None:
    assert len(imported(chain(1000, 1)).functions) == 1000


def test_calls_too_deep_to_run_are_refused() -> None:
    words = "call each other 100 deep; at most 100"
    with tf.Session(graph=imported(chain(1000, 1))) as session, pytest.raises(Exhausted, match=words):
        session.run("y:0", {"x:0": 1.0})


def test_calls_that_come_to_a_billion_nodes_are_refused() -> None:
    words = r"the calls of a run come to \d+ nodes; at most"
    with tf.Session(graph=imported(chain(32, 2))) as session, pytest.raises(Exhausted, match=words):
        session.run("y:0", {"x:0": 1.0})


@pytest.mark.slow
def test_branches_that_run_the_same_function_many_times_are_planned_in_time() -> None:
    message = tf.GraphDef()
    for name in ("p", "x"):
        message.node.add(name=name, op="Placeholder").attr["dtype"].type = 10
    branch(message.node.add(name="y", op="StatelessIf", input=["p", "x"]), "f0")
    for i in range(24):
        function = message.library.function.add()
        function.signature.name = f"f{i}"
        function.signature.input_arg.add(name="x", type=10)
        function.signature.output_arg.add(name="y", type=10)
        function.ret["y"] = "x"
        if i < 23:
            branch(function.node_def.add(name="n", op="StatelessIf", input=["x", "x"]), f"f{i + 1}")
            function.ret["y"] = "n:output:0"
    with tf.Session(graph=imported(message)) as session:
        assert session.run("y:0", {"p:0": True, "x:0": True})


def branch(node: Any, callee: str) -> None:
    node.attr["then_branch"].func.name = node.attr["else_branch"].func.name = callee
    node.attr["Tcond"].type = 10
    for key in ("Tin", "Tout"):
        node.attr[key].list.type.append(10)
