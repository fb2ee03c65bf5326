"""`slim.dataset_data_provider`: the items of a data set, read by several readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe_contrib.contrib.slim_data.data_provider import DataProvider
from timberframe_contrib.contrib.slim_data.parallel_reader import parallel_read
from timberframe_core.errors import InvalidArgumentError


class DatasetDataProvider(DataProvider):
    """Gives the decoded items of the next record of a `slim.dataset.Dataset`.

    Queue runners read the records: see `slim.parallel_reader.parallel_read` for the arguments. record_key: the name of
    the item that has the record's key.
    """

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Mapping[str, Any] | None = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        items = dataset.decoder.list_items()
        if record_key in items:
            raise InvalidArgumentError(
                f"DatasetDataProvider: record_key {record_key!r} is an item of the decoder; it must be another name"
            )
        key, data = parallel_read(
            dataset.data_sources, dataset.reader, num_epochs, num_readers, reader_kwargs, shuffle,
            capacity=common_queue_capacity, min_after_dequeue=common_queue_min, seed=seed, scope=scope,
        )  # fmt: skip
        tensors = dataset.decoder.decode(data, items)
        super().__init__({**dict(zip(items, tensors, strict=True)), record_key: key}, dataset.num_samples)
