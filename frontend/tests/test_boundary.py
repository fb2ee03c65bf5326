"""Arguments that no function expects raise an error of `tf.errors`, from every public function."""

from __future__ import annotations

import inspect
import itertools
import operator
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import timberframe as tf

SPACES = ("bitwise", "image", "initializers", "linalg", "losses", "math", "nest", "nn", "random", "strings", "train")
FILES = ("checkpoint", "graph", "load", "saved", "import", "export")  # parts of names of functions that use files


def functions() -> Iterator[Any]:
    """Yields the public functions, each once."""
    seen: set[int] = set()
    for name in SPACES:
        for space, prefix in ((tf, "tf"), (getattr(tf, name), f"tf.{name}")):
            for key in sorted(getattr(space, "__all__", dir(space))):
                value = getattr(space, key)
                if inspect.isfunction(value) and key[0] != "_" and id(value) not in seen:
                    seen.add(id(value))
                    if not any(part in key for part in FILES):
                        yield pytest.param(value, id=f"{prefix}.{key}")


def odd_values() -> list[Any]:
    return [
        None, "odd", b"\xff", -1, 2**70, 1.5, object(), [], [None], {}, np.array([]), np.array(["x"]), np.zeros((2, 0)),
        np.datetime64("2020"), tf.constant([1, 2]), tf.constant("s"), tf.placeholder(tf.float32), type, Ellipsis,
        lambda *_: None,
    ]  # fmt: skip


@pytest.mark.parametrize("function", list(functions()))
def test_odd_arguments_end_in_an_error_of_ours_or_work(function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    count = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    raised: list[tuple[int, Any, Exception]] = []
    with tf.Graph().as_default():
        for position, odd in itertools.product(range(count), odd_values()):
            arguments: list[Any] = [tf.ones([2, 3])] * count
            arguments[position] = odd
            try:
                function(*arguments)
            except Exception as e:
                raised.append((position, odd, e))
    assert [found for found in raised if not isinstance(found[2], tf.errors.OpError)] == []


def test_the_first_exception_is_kept_as_the_cause() -> None:
    with pytest.raises(tf.errors.InvalidTypeError, match=r"tf\.stack: TypeError: 'NoneType' object is not") as caught:
        tf.stack(None)
    assert type(caught.value.__cause__) is TypeError


def test_an_exception_of_the_users_function_passes_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        tf.cond(tf.constant(True), lambda: 1 / 0, lambda: 1.0)


def test_an_exception_of_numpy_in_the_users_function_passes_as_it_is() -> None:
    with pytest.raises(IndexError) as caught:
        tf.cond(tf.constant(True), lambda: np.zeros(3)[7], lambda: 1.0)
    assert not isinstance(caught.value, tf.errors.OpError)


def test_a_wrong_call_is_reported_by_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        tf.reshape(1.0)  # type: ignore[call-arg]  # that is the point
    assert not isinstance(caught.value, tf.errors.OpError)


def test_a_constructor_refuses_settings_of_a_wrong_kind() -> None:
    with pytest.raises(tf.errors.InvalidTypeError, match=r"tf\.train\.FtrlOptimizer: TypeError"):
        tf.train.FtrlOptimizer(0.1, learning_rate_power=None)  # type: ignore[arg-type]  # that is the point


def test_a_function_of_two_namespaces_is_one() -> None:
    assert tf.math.add is tf.add


def test_a_function_keeps_its_signature_and_its_text() -> None:
    assert list(inspect.signature(tf.reshape).parameters) == ["tensor", "shape", "name"]
    assert inspect.getdoc(tf.reshape)


def offered() -> list[tuple[str, Any]]:
    """Returns the functions and classes of the namespaces that programs use most."""
    names = ["", "image", "layers", "losses", "metrics", "nn", "nn.rnn_cell", "strings", "summary", "train"]
    names += ["contrib.layers", "contrib.rnn", "contrib.seq2seq", "data", "distributions", "estimator", "gfile", "math"]
    spaces = [(name, operator.attrgetter(name)(tf) if name else tf) for name in names]
    found = [(f"{name}.{n}".strip("."), getattr(space, n)) for name, space in spaces for n in dir(space) if n[0] != "_"]
    return [(name, value) for name, value in found if inspect.isfunction(value) or inspect.isclass(value)]


def test_public_functions_and_classes_can_be_pickled() -> None:
    found = offered()
    assert len(found) > 1000
    assert [name for name, value in found if not is_found_again(value)] == []


def is_found_again(value: Any) -> bool:
    try:
        return pickle.loads(pickle.dumps(value)) is value
    except (pickle.PicklingError, ImportError, AttributeError):
        return False
