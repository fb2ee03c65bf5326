"""`slim.dataset`: what describes a data set."""

from __future__ import annotations

from typing import Any


class Dataset:
    """A data set: where its records are, what reads and decodes them, and how many there are.

    data_sources: files, see `slim.parallel_reader.get_data_files`. reader: a class of readers, such as
    `tf.TFRecordReader`. decoder: a `slim.data_decoder.DataDecoder`. items_to_descriptions: what each of its items is.
    kwargs: become further attributes, such as num_classes.
    """

    def __init__(
        self, data_sources: Any, reader: Any, decoder: Any, num_samples: int, items_to_descriptions: Any, **kwargs: Any
    ) -> None:
        vars(self).update(kwargs)
        self.data_sources = data_sources
        self.reader = reader
        self.decoder = decoder
        self.num_samples = num_samples
        self.items_to_descriptions = items_to_descriptions
