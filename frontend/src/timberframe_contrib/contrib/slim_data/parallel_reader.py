"""`slim.parallel_reader`: records of many files, read by several readers into one queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from timberframe import gfile
from timberframe.api.arithmetic import add_n
from timberframe.api.framework import name_scope
from timberframe.api.queues import FIFOQueue, QueueBase, RandomShuffleQueue
from timberframe.train.input_producers import string_input_producer
from timberframe.train.queue_runner import QueueRunner, add_queue_runner, summarize_fullness
from timberframe_core.dtypes import string
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.operation import Tensor


class ParallelReader:
    """Readers that read different files at a time into one queue of pairs of key and value.

    reader_class, reader_kwargs: what makes each of the num_readers readers. common_queue: of two strings.
    """

    def __init__(
        self,
        reader_class: Any,
        common_queue: QueueBase,
        num_readers: int = 4,
        reader_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if [d.base_dtype for d in common_queue.dtypes] != [string, string]:
            names = ", ".join(d.name for d in common_queue.dtypes)
            raise InvalidTypeError(f"ParallelReader: common_queue has components {names}; two strings are required")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        """How many readers there are."""
        return len(self._readers)

    @property
    def common_queue(self) -> QueueBase:
        """The queue that they fill."""
        return self._common_queue

    def read(self, queue: Any, name: str | None = None) -> list[Tensor]:
        """Key and value of the next record of the files in `queue`; a queue runner is added, which fills the queue."""
        filled = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        add_queue_runner(QueueRunner(self._common_queue, filled))
        pair: list[Tensor] = self._common_queue.dequeue(name=name)
        return pair

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Returns how many records all readers have read."""
        return add_n([reader.num_records_produced() for reader in self._readers], name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Returns how many files all readers have read to their end."""
        return add_n([reader.num_work_units_completed() for reader in self._readers], name=name)


def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Mapping[str, Any] | None = None,
    shuffle: bool = True,
    dtypes: Sequence[Any] | None = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> list[Tensor]:
    """Key and value of the next record of the files, which several readers read.

    num_epochs: how often each file is read, None for no end. shuffle: the files, and the records in a
    RandomShuffleQueue of this capacity and min_after_dequeue. dtypes: of key and value, by default strings.
    """
    files = get_data_files(data_sources)
    with name_scope(scope, "parallel_read"):
        names = string_input_producer(files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames")
        kinds = dtypes or [string, string]
        queue: QueueBase = (
            RandomShuffleQueue(capacity, min_after_dequeue, kinds, seed=seed, name="common_queue")
            if shuffle
            else FIFOQueue(capacity, kinds, name="common_queue")
        )
        summarize_fullness(queue, capacity, f"fraction_of_{capacity}_full")
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


def single_pass_read(
    data_sources: Any, reader_class: Any, reader_kwargs: Mapping[str, Any] | None = None, scope: str | None = None
) -> Any:
    """Key and value of the next record of the files, which one reader reads once in their order."""
    files = get_data_files(data_sources)
    with name_scope(scope, "single_pass_read"):
        names = string_input_producer(files, num_epochs=1, shuffle=False, capacity=1, name="filenames")
        return reader_class(**(reader_kwargs or {})).read(names)


def get_data_files(data_sources: Any) -> list[str]:
    """Returns the files that a name, a pattern, or each of several of them names.

    Raises InvalidArgumentError where a pattern matches none.
    """
    if isinstance(data_sources, list | tuple):
        files = [file for source in data_sources for file in get_data_files(source)]
    elif any(sign in data_sources for sign in "*?["):
        files = sorted(gfile.Glob(data_sources))
    else:
        files = [data_sources]
    if not files:
        raise InvalidArgumentError(f"get_data_files: {data_sources!r} matches no file; at least one is required")
    return files
