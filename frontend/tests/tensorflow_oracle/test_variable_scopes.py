"""The same programs with variable scopes on both sides: equal names, and errors at the same points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import timberframe

Program = Callable[[Any], Any]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


def get(tf: Any, name: str, shape: Any = (2,), **rest: Any) -> Any:
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), **rest)


def names(variables: Any) -> list[str]:
    return [v.name for v in variables]


def scope_facts(tf: Any, scope: Any) -> list[Any]:
    return [scope.name, scope.original_name_scope, bool(scope.reuse), tf.constant(1.0).name]


@program
def nested_and_reused(tf: Any) -> Any:
    found = []
    with tf.variable_scope("a") as a:
        found += [get(tf, "v").name, *scope_facts(tf, a)]
        with tf.variable_scope("b") as b:
            found += [get(tf, "v").name, *scope_facts(tf, b)]
    with tf.variable_scope("a", reuse=True) as a:
        found += [get(tf, "v").name, *scope_facts(tf, a)]
        with tf.variable_scope("b") as b:
            found += [get(tf, "v").name, *scope_facts(tf, b)]
    with tf.variable_scope(b) as reopened:
        found += [get(tf, "v").name, *scope_facts(tf, reopened)]
    with tf.variable_scope(a, auxiliary_name_scope=False) as reopened:
        found += scope_facts(tf, reopened)
    with tf.name_scope(a.original_name_scope):
        found.append(tf.constant(2.0).name)
    return found


@program
def default_names(tf: Any) -> Any:
    found = []
    for _ in range(3):
        with tf.variable_scope(None, "layer") as scope:
            found += [get(tf, "v").name, *scope_facts(tf, scope)]
    for _ in range(2):
        with tf.variable_scope("outer"), tf.variable_scope(None, "layer") as scope:
            found += scope_facts(tf, scope)
    with tf.name_scope("names"), tf.variable_scope("q") as scope:
        found += [get(tf, "v").name, *scope_facts(tf, scope), tf.Variable(1.0).name]
    return found


@program
def without_name_scope(tf: Any) -> Any:
    found = []
    with tf.variable_scope("o"):
        for arguments in (("i",), (None, "d")):
            with tf.variable_scope(*arguments, auxiliary_name_scope=False) as scope:
                found += [get(tf, "v").name, *scope_facts(tf, scope)]
    root = tf.get_variable_scope()
    for name in ("", "x/y", root):
        with tf.variable_scope(name) as scope:
            found += scope_facts(tf, scope)
            with tf.variable_scope(root) as inner:
                found += scope_facts(tf, inner)
    return found


@program
def made_twice(tf: Any) -> Any:
    get(tf, "v")
    get(tf, "v")


@program
def reuse_of_nothing(tf: Any) -> Any:
    with tf.variable_scope("s", reuse=True):
        get(tf, "v")


@program
def reuse_without_name(tf: Any) -> Any:
    with tf.variable_scope(None, "s", reuse=True):
        pass


@program
def auto_reuse_is_inherited(tf: Any) -> Any:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE), tf.variable_scope("t", reuse=False):
        return get(tf, "v") is get(tf, "v")


@program
def reuse_variables(tf: Any) -> Any:
    with tf.variable_scope("s") as scope:
        v = get(tf, "v")
        scope.reuse_variables()
        return get(tf, "v") is v


@program
def reuse_with_another_shape(tf: Any) -> Any:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        get(tf, "v")
        get(tf, "v", (3,))


@program
def reuse_with_another_dtype(tf: Any) -> Any:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        get(tf, "v")
        get(tf, "v", dtype=tf.int32)


@program
def no_shape(tf: Any) -> Any:
    tf.get_variable("v", initializer=tf.zeros_initializer())


@program
def value_and_shape(tf: Any) -> Any:
    tf.get_variable("v", [1], initializer=3.0)


@program
def value_of_another_dtype(tf: Any) -> Any:
    tf.get_variable("v", initializer=3, dtype=tf.float64)


@program
def complex_without_initializer(tf: Any) -> Any:
    tf.get_variable("v", [2], tf.complex64)


@program
def values_and_functions(tf: Any) -> Any:
    made = [
        tf.get_variable("a", initializer=3.0),
        tf.get_variable("b", initializer=tf.constant([1, 2])),
        tf.get_variable("c", initializer=lambda: tf.ones([2, 2])),
        tf.get_variable("d", [2], tf.bool),
    ]
    with tf.variable_scope("half", dtype=tf.float16):
        made += [get(tf, "v"), tf.get_variable("w", initializer=3)]
    return [(v.name, v.dtype.name, v.shape.as_list()) for v in made]


@program
def regularizers(tf: Any) -> Any:
    with tf.variable_scope("s", regularizer=tf.nn.l2_loss):
        get(tf, "a")
        get(tf, "b", regularizer=tf.no_regularizer)
        with tf.variable_scope("t", reuse=tf.AUTO_REUSE):
            get(tf, "c")
            get(tf, "c")
    return names(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))


@program
def collections(tf: Any) -> Any:
    with tf.variable_scope("s"):
        get(tf, "a")
        get(tf, "b", trainable=False)
        tf.get_local_variable("l", [2], initializer=tf.zeros_initializer())
        get(tf, "m", collections=["variables", "model_variables"])
        get(tf, "n", collections=[])
    with tf.variable_scope("s2"):
        get(tf, "a")
    with tf.variable_scope("s") as s:
        inside = [names(s.global_variables()), names(s.trainable_variables()), names(s.local_variables())]
    everywhere = tf.global_variables(), tf.trainable_variables(), tf.local_variables(), tf.model_variables()
    return inside, [names(c) for c in everywhere], names(tf.global_variables("s2"))


@program
def custom_getters(tf: Any) -> Any:
    calls = []

    def inner(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(("inner", name))
        return getter(name, *args, **kwargs)

    def outer(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(("outer", name))
        return getter(f"{name}_x", *args, **kwargs)

    with tf.variable_scope("o", custom_getter=outer), tf.variable_scope("i", custom_getter=inner):
        return get(tf, "v").name, calls


@program
def inside_a_branch(tf: Any) -> Any:
    def branch() -> Any:
        with tf.variable_scope("in"):
            return get(tf, "v").value()

    with tf.variable_scope("s"):
        tf.cond(tf.constant(True), branch, lambda: tf.zeros([2]))
    return names(tf.global_variables())


@program
def templates(tf: Any) -> Any:
    def net(_: Any) -> Any:
        return get(tf, "w").name, tf.constant(1.0, name="c").name

    first, second = tf.make_template("net", net), tf.make_template("net", net)
    found = [first(1), first(2), second(1), second(1)]
    with tf.variable_scope("sc"):
        third = tf.make_template("net", net, create_scope_now_=True)
        found += [third(1), third(1)]
    return found, first.name, second.var_scope.name, names(first.variables), names(second.trainable_variables)


@program
def template_that_grows(tf: Any) -> Any:
    fresh = iter("ab")
    template = tf.make_template("net", lambda: get(tf, next(fresh)))
    template()
    template()


@program
def unique_templates(tf: Any) -> Any:
    template = tf.make_template("net", lambda: (get(tf, "a").name, tf.constant(1).name), unique_name_="once")
    return template(), template()


@program
def updates_and_reads(tf: Any) -> Any:
    v = tf.Variable([1.0, 2.0], name="v", use_resource=True)
    v.assign([2.0, 3.0])
    v.assign_add([2.0, 3.0])
    tf.assign(v, [3.0, 4.0])
    made = [v.value(), v.read_value(), v + 1, v.is_initialized(), v.assign([2.0, 3.0], name="named", read_value=False)]
    return [x.name for x in made], [op.name for op in v.graph.get_operations() if op.type == "ReadVariableOp"]


def outcome(tf: Any, function: Program) -> Any:
    with tf.Graph().as_default():
        try:
            return function(tf)
        except ValueError:
            return "ValueError"


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_names_are_tensorflows(tensorflow: Any, function: Program) -> None:
    tensorflow.enable_resource_variables()
    assert outcome(timberframe, function) == outcome(tensorflow, function)


def test_collections_have_tensorflows_names(tensorflow: Any) -> None:
    keys = [k for k in dir(tensorflow.GraphKeys) if k.isupper() and not k.startswith("_")]
    wanted = {k: getattr(tensorflow.GraphKeys, k) for k in keys}
    assert {k: getattr(timberframe.GraphKeys, k, None) for k in wanted} == wanted
