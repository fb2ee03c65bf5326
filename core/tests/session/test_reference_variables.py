"""Reference variables of TensorFlow 1: order by edges alone, errors, and variables within loops and branches."""

from __future__ import annotations

from typing import Any

import pytest

import timberframe as tf

Write = Any


def variable(write: Write, shape: tuple[int, ...] | None = (), **more: Any) -> Write:
    """v with its initializer `init`, which makes it 5."""
    write("VariableV2", "v", shape=shape, dtype=tf.int32, **more)
    return write.const("five", 5)("Assign", "init", "v", "five")


def test_value_stays_from_run_to_run(write: Write) -> None:
    variable(write).const("two", 2)("AssignAdd", "add", "v", "two")
    with tf.Session(graph=write.graph()) as session:
        session.run("init")
        assert [int(session.run("add:0")) for _ in range(3)] == [7, 9, 11]
        assert session.run("v:0") == 11


def test_output_of_an_assign_is_the_variable_after_the_write(write: Write) -> None:
    variable(write).const("two", 2)("AssignAdd", "add", "init", "two")("Mul", "double", "add", "two")
    assert write.run("double:0") == 14


def test_reader_runs_after_the_write_that_it_waits_for(write: Write) -> None:
    variable(write)("Identity", "read", "v", "^init")
    assert write.run("read:0") == 5


@pytest.mark.parametrize("dtype", [tf.float32, tf.string])
def test_variable_of_no_elements_has_its_value_without_an_initializer(write: Write, dtype: tf.DType) -> None:
    write("VariableV2", "v", shape=(0, 3), dtype=dtype)("Identity", "read", "v", T=dtype)
    write("IsVariableInitialized", "has", "v", dtype=dtype)
    with tf.Session(graph=write.graph()) as session:
        value, has = session.run(["read:0", "has:0"])
    assert (value.shape, value.dtype) == ((0, 3), dtype.as_numpy_dtype)
    assert has


def test_variable_of_no_elements_keeps_what_it_was_grown_to(write: Write) -> None:
    write("VariableV2", "v", shape=(0,), dtype=tf.int32)("Identity", "read", "v")
    write.const("axis", 0).const("two", [1, 2])("ConcatV2", "longer", "v", "two", "axis", N=2)
    write("Assign", "grow", "v", "longer", validate_shape=False)
    with tf.Session(graph=write.graph()) as session:
        for _ in range(2):
            session.run("grow")
        assert session.run("read:0").tolist() == [1, 2, 1, 2]


def test_variable_of_a_shape_known_in_part_has_no_value_though_a_size_is_zero(write: Write) -> None:
    write("VariableV2", "v", shape=(None, 0), dtype=tf.int32)("Identity", "read", "v")
    with pytest.raises(tf.errors.FailedPreconditionError, match="variable 'v' has no value"):
        write.run("read:0")


def test_variable_without_a_value_is_named(write: Write) -> None:
    variable(write)("Identity", "read", "v")
    with pytest.raises(tf.errors.FailedPreconditionError, match="variable 'v' has no value"):
        write.run("read:0")


def test_whether_a_variable_has_a_value(write: Write) -> None:
    variable(write)("IsVariableInitialized", "has", "v")
    with tf.Session(graph=write.graph()) as session:
        assert not session.run("has:0")
        session.run("init")
        assert session.run("has:0")


def test_shared_name_means_the_same_variable(write: Write) -> None:
    variable(write, shared_name="common")("VariableV2", "w", shape=(), dtype=tf.int32, shared_name="common")
    with tf.Session(graph=write.graph()) as session:
        session.run("init")
        assert session.run("w:0") == 5


def test_assign_checks_the_shape(write: Write) -> None:
    variable(write, shape=(3,))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"value has shape \(\); the variable needs \(3,\)"):
        write.run("init")


def test_assign_without_validate_shape_changes_the_shape(write: Write) -> None:
    variable(write).const("many", [1, 2, 3])("Assign", "widen", "v", "many", validate_shape=False)
    with tf.Session(graph=write.graph()) as session:
        session.run("init")
        session.run("widen")
        assert list(session.run("v:0")) == [1, 2, 3]


def test_temporary_variable_lives_for_one_run(write: Write) -> None:
    write("TemporaryVariable", "t", shape=(), dtype=tf.int32, var_name="tmp").const("five", 5)
    write("Assign", "set", "t", "five")("AssignAdd", "add", "set", "five")
    write("DestroyTemporaryVariable", "value", "add", var_name="tmp")
    with tf.Session(graph=write.graph()) as session:
        assert [int(session.run("value:0")) for _ in range(2)] == [10, 10]


def test_temporary_variables_of_one_name_do_not_overlap(write: Write) -> None:
    for name in ("a", "b"):
        write("TemporaryVariable", name, shape=(), dtype=tf.int32, var_name="tmp")
    write("AddV2", "sum", "a", "b")
    with pytest.raises(tf.errors.AlreadyExistsError, match="'tmp' exists already"):
        write.run("sum:0")


@pytest.mark.parametrize(("p", "expected"), [(True, 5), (False, 6)])
def test_write_on_a_branch_happens_only_there(write: Write, p: bool, expected: int) -> None:
    variable(write)("Placeholder", "p", dtype=tf.bool)("RefSwitch", "s", "v", "p").const("one", 1)
    write("Switch", "one_if", "one", "p")("AssignAdd", "add", "s", "one_if")("RefMerge", "m", "add", "s:1", N=2)
    with tf.Session(graph=write.graph()) as session:
        session.run("init")
        assert session.run("m:0", {"p:0": p}) == expected
        assert session.run("v:0") == expected


def test_loop_writes_a_variable_in_each_iteration(write: Write) -> None:
    variable(write).const("zero", 0)("Enter", "i", "zero", frame_name="w")("Merge", "now", "i", "next", N=2)
    write.const("end", 4, "^now")("Less", "less", "now", "end")("LoopCond", "more", "less")(
        "Switch", "if", "now", "more"
    )
    write("RefEnter", "v_in", "v", frame_name="w", is_constant=True).const("one", 1, "^if")
    write("AssignAdd", "add", "v_in", "one")("AddV2", "new", "if:1", "one", "^add")
    write("NextIteration", "next", "new")("Exit", "out", "if")
    with tf.Session(graph=write.graph()) as session:
        session.run("init")
        assert session.run("out:0") == 4
        assert session.run("v:0") == 9


def test_part_of_a_variable_is_assigned(write: Write) -> None:
    write("VariableV2", "v", shape=(4,), dtype=tf.int32).const("start", [1, 2, 3, 4])("Assign", "init", "v", "start")
    write.const("first", [1]).const("last", [3]).const("step", [1]).const("new", [8, 9])
    write("StridedSliceAssign", "assign", "init", "first", "last", "step", "new", Index=tf.int32)
    assert list(write.run("assign:0")) == [1, 8, 9, 4]


def test_stack_of_the_older_form(write: Write) -> None:
    write("Stack", "s", elem_type=tf.int32).const("x", 3)("StackPush", "push", "s", "x")
    write("StackPop", "pop", "s", "^push", elem_type=tf.int32)
    assert write.run("pop:0") == 3


def test_writer_without_a_variable_is_refused(write: Write) -> None:
    variable(write)("Identity", "copy", "v")("Assign", "wrong", "copy", "five")
    with pytest.raises(tf.errors.InvalidArgumentError, match="a reference to a variable is required"):
        write.run("wrong:0")
