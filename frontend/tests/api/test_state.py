"""tf.Variable and what is built around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_dtype_and_shape_come_from_the_initial_value() -> None:
    v = tf.Variable([1.0, 2.0])
    assert (v.dtype, v.shape.as_list()) == (tf.float32, [2])


def test_initial_value_may_be_a_function() -> None:
    assert tf.Variable(lambda: [1, 2], dtype=tf.int64).dtype is tf.int64


def test_initial_value_is_required() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Variable 'v': has no initial_value"):
        tf.Variable(name="v")


def test_names_are_tensorflows(graph: tf.Graph) -> None:
    v = tf.Variable(1.0, name="v")
    assert v.name == "v:0"
    assert (v.initializer.name, v.initial_value.name) == ("v/Assign", "v/Initializer/initial_value:0")
    assert tf.Variable(1.0, name="v").name == "v_1:0"


def test_collections_list_trainable_variables() -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    assert tf.global_variables() == [a, b]
    assert tf.trainable_variables() == [a]


def test_assign_checks_the_shape() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has shape \(3,\); the variable needs \(2,\)"):
        tf.Variable([1.0, 2.0]).assign([1.0, 2.0, 3.0])


def test_any_shape_may_be_assigned_without_validation() -> None:
    assert tf.Variable([1.0, 2.0], validate_shape=False).assign([1.0]).shape.rank is None


def test_assign_without_validation_changes_the_shape_of_a_variable() -> None:
    words = tf.Variable([], name="words", dtype=tf.string, trainable=False, collections=[])
    before, given = tf.identity(words), tf.placeholder(tf.string, [None])
    longer = tf.assign(words, tf.concat([words, given], 0), validate_shape=False)
    with tf.Session() as session:
        assert session.run(before).tolist() == []
        assert session.run(longer, {given: ["a"]}).tolist() == [b"a"]
        assert session.run(longer, {given: ["b", "c"]}).tolist() == [b"a", b"b", b"c"]
        assert session.run([before, tf.size(before)], {})[0].tolist() == [b"a", b"b", b"c"]
        assert session.run(tf.size(before)) == 3


def test_assign_without_validation_keeps_the_shape_where_the_value_has_it() -> None:
    v = tf.Variable([1.0, 2.0])
    assert tf.assign(v, [3.0, 4.0], validate_shape=False).shape == v.shape == (2,)


def test_set_shape_tells_the_shape_of_what_is_read() -> None:
    v = tf.Variable(1.0, validate_shape=False)
    assert v.shape.rank is None
    v.set_shape([2])
    assert [v.shape, v.value().shape, tf.identity(v).shape] == [(2,)] * 3
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(v.assign([3.0, 4.0]))
        assert session.run(v + 1.0).tolist() == [4.0, 5.0]
    with pytest.raises(ValueError, match="sizes 2 and 3 differ"):
        v.set_shape([3])


def test_variable_that_grows_goes_through_a_graph_def() -> None:
    v = tf.Variable(np.zeros([0], np.int32), name="v")
    tf.assign(v, tf.concat([v, [1, 2]], 0), validate_shape=False, name="grow")
    message = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        for _ in range(2):
            session.run("grow")
        assert session.run("v/Read/ReadVariableOp:0").tolist() == [1, 2, 1, 2]


def test_assign_checks_the_dtype() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be int32"):
        tf.Variable(1).assign(1.5)


def test_assign_reads_after_it_wrote() -> None:
    value = tf.Variable(1.0).assign_add(2.0)
    assert [op.type for op in value.op.control_inputs] == ["AssignAddVariableOp"]


def test_assign_without_read_is_the_operation() -> None:
    assert tf.Variable(1.0).assign(2.0, read_value=False).type == "AssignVariableOp"


def test_fetching_adds_no_nodes(graph: tf.Graph) -> None:
    v = tf.Variable(1.0)
    before = len(graph)
    assert graph.as_graph_element(v).op.type == "ReadVariableOp"
    assert len(graph) == before


def test_reads_stay_on_the_variables_device() -> None:
    with tf.device("/acme:1"):
        v = tf.Variable(1.0)
    with tf.device("/other:0"):
        assert v.value().device == "/device:ACME:1"


def test_variable_made_in_a_branch_belongs_to_the_outer_graph(graph: tf.Graph) -> None:
    made = []

    def branch() -> tf.Tensor:
        made.append(tf.Variable(3.0))
        return made[0].read_value()

    tf.cond(tf.placeholder(tf.bool, []), branch, lambda: 0.0)
    assert made[0].graph is graph


def test_initializer_groups_all_variables() -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    assert tf.global_variables_initializer().control_inputs == (a.initializer, b.initializer)


def test_a_variable_is_true_beside_none() -> None:
    made, averages = tf.Variable(0.0), tf.train.ExponentialMovingAverage(0.9)
    averages.apply([made])
    found = averages.average(made)
    assert (found if found else made) is found
    assert not averages.average(tf.Variable(1.0))


def test_variables_compare_by_identity() -> None:
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    assert a != b
    assert len({a, b, a}) == 2


def test_initial_value_of_a_loop_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="belongs to a loop, a branch or another graph"):
        tf.while_loop(lambda i: i < 3, lambda i: i + tf.Variable(i + 1), [0])


def test_collections_must_be_a_list() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="collections is 'variables'; a list of names is required"):
        tf.Variable(1.0, collections="variables")


def test_variable_def_finds_the_variable_again(graph: tf.Graph) -> None:
    v = tf.Variable(1.0, name="v", trainable=False)
    before = len(graph)
    restored = tf.Variable.from_proto(v.to_proto().SerializeToString())
    assert (restored.handle, restored.initializer, restored.trainable) == (v.handle, v.initializer, False)
    assert len(graph) == before


def test_variable_def_of_another_scope_is_none() -> None:
    assert tf.Variable(1.0, name="v").to_proto("scope") is None


def test_a_slice_of_a_variable_is_assigned_by_the_function_too() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0, 3.0])
        session.run(v.initializer)
        assert session.run(tf.assign(v[1:], [5.0, 6.0])).tolist() == [1, 5, 6]


def test_a_slice_of_a_variable_is_assigned_in_branches_and_loops() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([0.0, 0.0, 0.0, 0.0])

        def step(i: Any) -> Any:
            with tf.control_dependencies([v[i].assign(tf.cast(i, tf.float32))]):
                return i + 1

        loop = tf.while_loop(lambda i: i < 3, step, [1])
        branch = tf.cond(loop > 2, lambda: tf.assign(v[3:], [9.0]), lambda: v.read_value())
        session.run(v.initializer)
        assert session.run(branch).tolist() == [0, 1, 2, 9]


def test_slices_keep_the_larger_or_smaller_element() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        session.run(v.initializer)
        assert session.run(v.scatter_nd_max([[0, 0], [1, 1]], [5.0, 0.0])).tolist() == [[5, 2], [3, 4]]
        assert session.run(v.scatter_nd_min([[1]], [[9.0, -1.0]])).tolist() == [[5, 2], [3, -1]]


def test_a_reference_to_a_variable_finds_it_again() -> None:
    with tf.Graph().as_default():
        v, other = tf.Variable(1.0), tf.Variable(1.0)
        assert {v.ref(): "v"} == {v.experimental_ref(): "v"}
        assert v.ref() != other.ref()
        assert v.ref().deref() is v


ASSIGNMENTS: dict[str, Any] = {
    "assign_add of assign": lambda v: tf.assign_add(tf.assign(v, v * 0.5), [0.1, 0.1]),
    "assign of assign_sub": lambda v: tf.assign(tf.assign_sub(v, [9.0, 9.0]), [0.6, 1.1]),
    "scatter of assign": lambda v: tf.scatter_add(tf.assign(v, v * 0.5), [0, 1], [0.1, 0.1]),
    "assign of scatter": lambda v: tf.assign_add(tf.scatter_update(v, [0, 1], [0.5, 1.0]), [0.1, 0.1]),
}


@pytest.mark.parametrize("place", ["outside", "branch", "loop"])
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_value_that_an_assignment_returns_is_assigned(name: str, place: str) -> None:
    v = tf.Variable([1.0, 2.0], trainable=False)
    if place == "outside":
        changed: Any = ASSIGNMENTS[name](v)
    elif place == "branch":
        changed = tf.cond(tf.constant(True), lambda: tf.group(ASSIGNMENTS[name](v)), tf.no_op)
    else:
        changed = tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, ASSIGNMENTS[name](v)), [0, tf.zeros([2])])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(changed)
        assert session.run(v).tolist() == pytest.approx([0.6, 1.1])


def test_the_value_that_an_assignment_of_a_variable_in_no_collection_returns_is_assigned() -> None:
    v = tf.Variable(1.0, collections=[], trainable=False)
    changed = tf.assign_add(tf.assign(v, 5.0), 2.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(changed) == 7


def test_a_tensor_is_not_assigned() -> None:
    v = tf.Variable(1.0)
    with pytest.raises(TypeError, match=r"assign: ref is .*a tf\.Variable is required"):
        tf.assign(v + 1.0, 2.0)
