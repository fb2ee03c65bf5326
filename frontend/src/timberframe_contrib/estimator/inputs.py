"""`tf.estimator.inputs`: input functions for arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from timberframe.api.python_functions import py_func
from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """Returns an input function that gives batches of rows of arrays, as (features, labels); without y only features.

    x: an array, or a dict of arrays, with as many rows each. y: the same for labels. num_epochs: how often all rows
    come, None for ever; the last batch may be smaller. shuffle: whether they come in random order, another one in each
    epoch; it must be given. The others are TensorFlow's and change nothing.
    """
    if not isinstance(shuffle, bool):
        raise InvalidArgumentError(
            f"numpy_input_fn: shuffle is {shuffle!r}; True (for training) or False (for evaluation) is required"
        )
    if batch_size <= 0:
        raise InvalidArgumentError(f"numpy_input_fn: batch_size is {batch_size}; it must be positive")
    features = _arrays(x, "x")
    labels = None if y is None else _arrays(y, "y")
    _check_rows({**_named(features, "x"), **({} if labels is None else _named(labels, "y"))})

    def input_fn() -> Any:
        return _dataset(features, labels, batch_size, num_epochs, shuffle)

    return input_fn


def _arrays(given: Any, what: str) -> Any:
    """Returns the arrays that were given, as they are or by name."""
    if isinstance(given, Mapping):
        if not given:
            raise InvalidArgumentError(f"numpy_input_fn: {what} is an empty dict; one array at least is required")
        return {name: _array(value, f"{what}['{name}']") for name, value in given.items()}
    return _array(given, what)


def _array(given: Any, what: str) -> np.ndarray:
    if not isinstance(given, np.ndarray):
        raise InvalidTypeError(f"numpy_input_fn: {what} is a {type(given).__name__}; a NumPy array is required")
    if not given.ndim:
        raise InvalidArgumentError(f"numpy_input_fn: {what} is a scalar; an array with rows is required")
    return given


def _named(arrays: Any, what: str) -> dict[str, np.ndarray]:
    return {f"{what}['{k}']": v for k, v in arrays.items()} if isinstance(arrays, dict) else {what: arrays}


def _check_rows(arrays: dict[str, np.ndarray]) -> None:
    rows = {name: len(array) for name, array in arrays.items()}
    if len(set(rows.values())) > 1:
        shown = ", ".join(f"{name} has {count}" for name, count in rows.items())
        raise InvalidArgumentError(f"numpy_input_fn: {shown} rows; all must have as many")


def _dataset(features: Any, labels: Any, batch_size: int, num_epochs: int | None, shuffle: bool) -> Any:
    """Returns a Dataset of batches. Only numbers of rows go through it, and the arrays stay out of the graph."""
    from timberframe.data import Dataset

    flat = [*_named(features, "x").values(), *({} if labels is None else _named(labels, "y")).values()]
    rows = Dataset.range(len(flat[0]))
    if shuffle:
        rows = rows.shuffle(max(1, len(flat[0])))
    batches = rows.repeat(num_epochs).batch(batch_size)

    def take(chosen: np.ndarray) -> list[np.ndarray]:
        return [array[chosen] for array in flat]

    def fetch(chosen: Any) -> Any:
        found = py_func(take, [chosen], [as_dtype(array.dtype) for array in flat])
        for tensor, array in zip(found, flat, strict=True):
            tensor.set_shape([None, *array.shape[1:]])
        split = len(features) if isinstance(features, dict) else 1
        given = _like(features, found[:split])
        return given if labels is None else (given, _like(labels, found[split:]))

    return batches.map(fetch)


def _like(arrays: Any, tensors: list[Any]) -> Any:
    return dict(zip(arrays, tensors, strict=True)) if isinstance(arrays, dict) else tensors[0]


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """`numpy_input_fn` for the columns of a pandas DataFrame x, with a Series or DataFrame y of the same index.

    A Series y is one array of labels; the columns of a DataFrame y are a dict of them. target_column: TensorFlow's name
    for the former.
    """
    if not hasattr(x, "columns"):
        raise InvalidTypeError(f"pandas_input_fn: x is a {type(x).__name__}; a pandas DataFrame is required")
    if y is not None and not x.index.equals(y.index):
        raise InvalidArgumentError("pandas_input_fn: x and y have other indices; equal ones are required")
    features = {name: x[name].to_numpy() for name in x.columns}
    labels = None
    if y is not None:
        labels = {name: y[name].to_numpy() for name in y.columns} if hasattr(y, "columns") else y.to_numpy()
    return numpy_input_fn(features, labels, batch_size, num_epochs, shuffle, queue_capacity, num_threads)
