"""`slim.summaries`: summaries of tensors, by default under the names of their operations.

A name is ``<prefix>/<name>``, with the name of the tensor's operation where no name is given. print_summary: the run
also prints the tensor, to standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from timberframe import summary
from timberframe.api.composites import zero_fraction
from timberframe.api.framework import GraphKeys, add_to_collection
from timberframe.api.python_functions import Print


def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """Returns a histogram of a tensor."""
    return summary.histogram(_named(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Returns the pictures of a tensor of shape (pictures, height, width, channels)."""
    return _summarized(summary.image, tensor, _named(tensor, name, prefix), print_summary)


def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Returns the value of a scalar."""
    return _summarized(summary.scalar, tensor, _named(tensor, name, prefix), print_summary)


def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Returns which part of a tensor's elements is zero, under a name that ends with ``Fraction_of_Zero_Values``."""
    full = f"{_named(tensor, name, prefix)}/Fraction_of_Zero_Values"
    return add_scalar_summary(zero_fraction(tensor), full, print_summary=print_summary)


def add_histogram_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """`add_histogram_summary` of each tensor."""
    return [add_histogram_summary(tensor, prefix=prefix) for tensor in tensors]


def add_image_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """`add_image_summary` of each tensor."""
    return [add_image_summary(tensor, prefix=prefix) for tensor in tensors]


def add_scalar_summaries(tensors: Iterable[Any], prefix: str | None = None, print_summary: bool = False) -> list[Any]:
    """`add_scalar_summary` of each tensor."""
    return [add_scalar_summary(tensor, prefix=prefix, print_summary=print_summary) for tensor in tensors]


def add_zero_fraction_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """`add_zero_fraction_summary` of each tensor."""
    return [add_zero_fraction_summary(tensor, prefix=prefix) for tensor in tensors]


def _named(tensor: Any, name: str | None, prefix: str | None) -> str:
    own = name or tensor.op.name
    return f"{prefix}/{own}" if prefix else own


def _summarized(write: Callable[..., Any], tensor: Any, name: str, print_summary: bool) -> Any:
    if not print_summary:
        return write(name, tensor)
    printed = Print(write(name, tensor, collections=[]), [tensor], name)
    add_to_collection(GraphKeys.SUMMARIES, printed)
    return printed
