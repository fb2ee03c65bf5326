"""tf.get_variable, variable scopes and templates; tests/tensorflow_oracle compares names with TensorFlow's."""

from __future__ import annotations

from typing import Any

import pytest

import timberframe as tf

pytestmark = pytest.mark.usefixtures("graph")

HERE = r"test_variable_scope\.py:\d+"


def get(name: str, shape: Any = (2,), **rest: Any) -> Any:
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), **rest)


def test_variable_names_depend_on_variable_scopes_alone() -> None:
    with tf.name_scope("names"), tf.variable_scope("a"), tf.variable_scope("b"):
        assert get("v").name == "a/b/v:0"


def test_reopened_scope_has_a_name_scope_of_its_own() -> None:
    with tf.variable_scope("a") as scope:
        pass
    with tf.variable_scope(scope):
        assert tf.constant(1).name == "a_1/Const:0"
    with tf.name_scope(scope.original_name_scope):
        assert tf.constant(1).name == "a/Const:0"


def test_default_names_are_unique() -> None:
    found = []
    for _ in range(2):
        with tf.variable_scope(None, "layer") as scope:
            found.append(scope.name)
    assert found == ["layer", "layer_1"]


def test_reuse_gives_the_same_variable() -> None:
    with tf.variable_scope("s"):
        v = get("v")
    with tf.variable_scope("s", reuse=True):
        assert get("v") is v


def test_auto_reuse_makes_what_is_missing_once() -> None:
    made = []
    for _ in range(2):
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            made.append(get("v"))
    assert made[0] is made[1]
    assert tf.global_variables() == [made[0]]


def test_variable_that_exists_needs_reuse() -> None:
    v = get("v")
    with pytest.raises(
        ValueError, match=f"get_variable 'v': exists already, made at .*{HERE}; its scope needs reuse=True"
    ):
        get("v")
    assert tf.global_variables() == [v]


def test_reuse_needs_a_variable_that_exists(graph: tf.Graph) -> None:
    with tf.variable_scope("s", reuse=True), pytest.raises(ValueError, match="get_variable 's/v': does not exist"):
        get("v")
    assert not graph.get_operations()


def test_plain_variables_are_not_reused() -> None:
    tf.Variable(1.0, name="v")
    with tf.variable_scope("", reuse=True), pytest.raises(ValueError, match="was not made by get_variable"):
        get("v")


def test_reuse_checks_the_shape() -> None:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        get("v")
        with pytest.raises(ValueError, match=rf"shape \(3,\) is asked for; the variable, made at .*{HERE}, has \(2,\)"):
            get("v", (3,))


def test_reuse_checks_the_dtype() -> None:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        get("v")
        with pytest.raises(ValueError, match=r"dtype int32 is asked for; the variable, made at .* has float32"):
            get("v", dtype=tf.int32)


@pytest.mark.parametrize("shape", [None, [None, 2]])
def test_new_variable_needs_every_size(shape: Any) -> None:
    with pytest.raises(ValueError, match="a new variable needs every size, or an initial value"):
        get("v", shape)


def test_value_as_initializer_has_its_own_shape() -> None:
    assert tf.get_variable("v", initializer=[1, 2, 3]).shape.as_list() == [3]
    with pytest.raises(ValueError, match="a value has its own shape"):
        tf.get_variable("w", [3], initializer=[1, 2, 3])


def test_integers_start_at_zero() -> None:
    v = tf.get_variable("v", [2], tf.int32)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(v).tolist() == [0, 0]


def test_complex_variable_needs_an_initializer() -> None:
    with pytest.raises(ValueError, match="has dtype complex64; such a variable needs an initializer"):
        tf.get_variable("v", [2], tf.complex64)


def test_scope_gives_defaults() -> None:
    with tf.variable_scope("s", initializer=tf.ones_initializer(), dtype=tf.float64):
        v = tf.get_variable("v", [2])
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(v).tolist() == [1, 1]
    assert v.dtype is tf.float64


def test_regularizer_adds_a_loss_once() -> None:
    with tf.variable_scope("s", regularizer=lambda v: tf.reduce_sum(v * v), reuse=tf.AUTO_REUSE):
        get("v")
        get("v")
        get("w", regularizer=tf.no_regularizer)
    assert [x.name for x in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)] == ["s/v/Regularizer/Sum:0"]


def test_custom_getter_decides() -> None:
    def doubled(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return getter(*args, **kwargs) * 2.0

    with tf.variable_scope("s", custom_getter=doubled):
        assert get("v").op.type == "Mul"


def test_local_variables_are_not_trained() -> None:
    v = tf.get_local_variable("v", [2], initializer=tf.zeros_initializer())
    assert (tf.local_variables(), tf.global_variables(), tf.trainable_variables()) == ([v], [], [])


def test_scope_closes_after_an_error() -> None:
    with pytest.raises(KeyError), tf.variable_scope("s"):
        raise KeyError
    assert tf.get_variable_scope().name == ""
    assert tf.constant(1).name == "Const:0"


def test_variable_made_in_a_loop_belongs_to_its_scope() -> None:
    with tf.variable_scope("s"):
        tf.while_loop(lambda i: i < 2.0, lambda i: i + 1.0 + get("v", ()), [0.0])
    assert [v.name for v in tf.global_variables()] == ["s/v:0"]


def test_template_shares_its_variables() -> None:
    template = tf.make_template("net", lambda x: get("w") * x)
    template(1.0)
    template(2.0)
    assert [v.name for v in tf.global_variables()] == ["net/w:0"]
    assert tf.make_template("net", lambda: get("w").name)() == "net_1/w:0"


def test_template_may_not_grow() -> None:
    template = tf.make_template("net", lambda: tf.Variable(1.0))
    template()
    with pytest.raises(ValueError, match="template 'net': made variable 'net_1/Variable:0' after its first call"):
        template()


def test_a_custom_getter_is_told_whether_the_variable_is_trained() -> None:
    seen = []

    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        seen.append(kwargs["trainable"])
        return getter(name, *args, **kwargs)

    with tf.variable_scope("s", custom_getter=getter):
        get("a")
        get("b", trainable=False)
        get("c", synchronization=tf.VariableSynchronization.ON_READ)
    assert seen == [True, False, False]


def test_a_custom_getter_that_asks_with_reuse_none_gets_the_variable_whether_it_exists_or_not() -> None:
    def twice(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        kwargs["reuse"] = None
        return getter(f"{name}_own", *args, **kwargs)

    with tf.variable_scope("s", custom_getter=twice):
        assert get("v") is get("v")


def test_a_regularizer_that_is_empty_is_none() -> None:
    get("v", regularizer={})
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []


def test_a_template_may_have_an_empty_name() -> None:
    template = tf.make_template("", lambda: get("v"))
    assert template() is template()
    with pytest.raises(tf.errors.InvalidArgumentError, match="name_ is None"):
        tf.make_template(None, lambda: None)  # type: ignore[arg-type]  # a wrong call


def test_a_getter_makes_a_variable_of_float32_where_no_dtype_is_given() -> None:
    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return getter(name, initializer=tf.zeros([2]))

    with tf.variable_scope("s", custom_getter=getter):
        assert get("v").dtype == tf.float32
