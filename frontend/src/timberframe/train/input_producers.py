"""Queues that threads fill with the rows of a tensor, epoch after epoch: the beginning of a queue-based input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timberframe.api.arrays import Assert, identity, shape, size
from timberframe.api.comparison import greater
from timberframe.api.constants import range as range_
from timberframe.api.framework import GraphKeys, control_dependencies, name_scope
from timberframe.api.indexing import gather
from timberframe.api.pictures import matching_files
from timberframe.api.queues import FIFOQueue, QueueBase
from timberframe.api.random import random_shuffle
from timberframe.api.variables import Variable
from timberframe.train.queue_runner import QueueRunner, add_queue_runner, summarize_fullness
from timberframe_core.dtypes import int64, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import convert_to_tensor
from timberframe_core.graph.operation import Operation, Tensor


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """Returns a local variable of the files that a pattern, or any of several, matches when it
    is initialized, in order.
    """
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(
            matching_files(pattern),
            name=scope,
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """Returns the tensor, which can be evaluated num_epochs times; then OutOfRangeError. Without
    num_epochs the tensor itself.

    Counts in a local variable `epochs`: run `tf.local_variables_initializer()` first.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise InvalidArgumentError(f"limit_epochs: num_epochs is {num_epochs}; it must be positive")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = convert_to_tensor(0, int64)
        epochs = Variable(zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """Returns a queue of the rows of a tensor, which a QueueRunner in GraphKeys.QUEUE_RUNNERS fills.

    element_shape: of a row, where the tensor's shape is not fully known. num_epochs: how often each row comes before
    OutOfRangeError (needs `tf.local_variables_initializer()`), for ever if None. shuffle: rows come in random order
    within each epoch, by `seed`. summary_name: of a scalar summary of how full the queue is. cancel_op: the runner's.
    """
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        element = rows.shape[1:].merge_with(element_shape)
        if not element.is_fully_defined():
            raise InvalidArgumentError(
                f"input_producer: rows of input_tensor have shape {element}; it must be fully known, or element_shape"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(
            capacity, [rows.dtype.base_dtype], shapes=[element], shared_name=shared_name, name=name or "fifo_queue"
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            summarize_fullness(queue, capacity, summary_name)
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:
    """Returns a queue of strings, such as names of files; see `input_producer`. There must be one at least."""
    required = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor | Variable) and not len(string_tensor):
        raise InvalidArgumentError(f"{required}; one string at least must be in it")
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        given = convert_to_tensor(string_tensor, string)
        with control_dependencies([Assert(greater(size(given), 0), [required])]):
            given = identity(given)
        summary = f"fraction_of_{capacity}_full"
        return input_producer(given, [], num_epochs, shuffle, seed, capacity, shared_name, summary, scope, cancel_op)


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """Returns a queue of the integers from 0 to limit - 1; see `input_producer`."""
    with name_scope(name, "input_producer", [limit]) as scope:
        summary = f"fraction_of_{capacity}_full"
        return input_producer(range_(limit), [], num_epochs, shuffle, seed, capacity, shared_name, summary, scope)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Returns a row of each tensor, the same of all, which must have equally many; see `input_producer`."""
    with name_scope(name, "input_producer", list(tensor_list)):
        tensors = [convert_to_tensor(t) for t in tensor_list]
        if not tensors:
            raise InvalidArgumentError("slice_input_producer: tensor_list is empty; one tensor at least is required")
        queue = range_input_producer(shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [gather(t, index) for t in tensors]
