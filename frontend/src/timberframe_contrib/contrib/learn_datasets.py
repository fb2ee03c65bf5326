"""`tf.contrib.learn.datasets`: MNIST from its files, and the pairs that data and labels are."""

from __future__ import annotations

from typing import Any, NamedTuple

from timberframe.examples.tutorials.mnist import input_data as mnist
from timberframe_core.errors import NotFoundError

__all__ = ["Dataset", "Datasets", "load_dataset", "mnist"]


class Dataset(NamedTuple):
    """Arrays of examples and of their labels."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """The parts of a data set."""

    train: Any
    validation: Any
    test: Any


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """Returns a data set by its name, "mnist", from the files in the folder MNIST-data.

    Raises NotFoundError for the others, which TensorFlow downloads.
    """
    del size, test_with_fake_data
    if name != "mnist":
        raise NotFoundError(f"load_dataset: '{name}' is not among the data sets, which are: mnist")
    return mnist.read_data_sets("MNIST-data")
