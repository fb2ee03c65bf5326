"""Reads the four files of MNIST, and deals out their images and labels in batches."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from timberframe_core.dtypes import as_dtype
from timberframe_core.errors import InvalidArgumentError, NotFoundError
from timberframe_core.graph.graph import get_default_graph

FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}
"""The files of a folder: for each part its images and its labels."""

_CLASSES = 10
_HEADS = {3: 0x0803, 1: 0x0801}  # the first word of an IDX file of bytes, by its rank


class DataSet:
    """Images and labels that are dealt out in batches, shuffled before each epoch by the seed, or the default graph's.

    images: [count, rows, columns, 1] of 0 to 255, kept as [count, rows * columns] where reshape is true, and as
    float32 from 0 to 1 where dtype is tf.float32. labels: [count] or [count, classes]. Raises InvalidArgumentError
    where images and labels differ in their number.
    """

    def __init__(
        self, images: npt.NDArray[Any], labels: npt.NDArray[Any], fake_data: bool = False, one_hot: bool = False,
        dtype: Any = np.float32, reshape: bool = True, seed: int | None = None,
    ) -> None:  # fmt: skip
        if fake_data:
            raise InvalidArgumentError("DataSet: fake_data=True; data of files is required")
        if len(images) != len(labels):
            raise InvalidArgumentError(f"DataSet: {len(images)} images and {len(labels)} labels; as many are required")
        self._random = np.random.RandomState(get_default_graph().seed if seed is None else seed)
        if reshape:
            images = images.reshape(len(images), math.prod(images.shape[1:]))
        if as_dtype(dtype).as_numpy_dtype == np.float32:
            images = images.astype(np.float32) * np.float32(1 / 255)
        self._images, self._labels = images, labels
        self._epochs, self._next = 0, 0

    @property
    def images(self) -> npt.NDArray[Any]:
        """All images, in the order of the current epoch."""
        return self._images

    @property
    def labels(self) -> npt.NDArray[Any]:
        """All labels, in the order of the images."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """The number of images."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How often all images have been dealt out."""
        return self._epochs

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Returns the next images and labels, [batch_size, ...] each; a batch may reach over the end of an epoch.

        Raises InvalidArgumentError where the batch is larger than the data.
        """
        if fake_data or not 0 < batch_size <= self.num_examples:
            raise InvalidArgumentError(
                f"next_batch: batch_size={batch_size}, fake_data={fake_data}; 1 to {self.num_examples} images of files "
                "are required"
            )
        if shuffle and not self._epochs and not self._next:
            self._shuffle()
        start, self._next = self._next, self._next + batch_size
        if self._next <= self.num_examples:
            return self._images[start : self._next], self._labels[start : self._next]
        images, labels = self._images[start:], self._labels[start:]
        self._epochs += 1
        self._next -= self.num_examples
        if shuffle:
            self._shuffle()
        return (
            np.concatenate([images, self._images[: self._next]]),
            np.concatenate([labels, self._labels[: self._next]]),
        )

    def _shuffle(self) -> None:
        order = self._random.permutation(self.num_examples)
        self._images, self._labels = self._images[order], self._labels[order]


class Datasets(NamedTuple):
    """What read_data_sets gives."""

    train: DataSet
    validation: DataSet
    test: DataSet


def extract_images(f: BinaryIO) -> npt.NDArray[np.uint8]:
    """Returns the images of an IDX file that is packed by gzip, uint8 [count, rows, columns, 1]."""
    return _values(f, 3)[..., np.newaxis]


def extract_labels(f: BinaryIO, one_hot: bool = False, num_classes: int = _CLASSES) -> npt.NDArray[Any]:
    """Returns the labels of an IDX file that is packed by gzip: uint8 [count], or float64
    [count, num_classes] if one_hot.
    """
    labels = _values(f, 1)
    return np.eye(num_classes)[labels] if one_hot else labels


def read_data_sets(
    train_dir: str, fake_data: bool = False, one_hot: bool = False, dtype: Any = np.float32, reshape: bool = True,
    validation_size: int = 5000, seed: int | None = None, source_url: str = "",
) -> Datasets:  # fmt: skip
    """Training, validation and test images of MNIST, from the four files in a folder; nothing is downloaded.

    The first validation_size training images are the validation's. Raises NotFoundError where a file is missing, and
    InvalidArgumentError where one is no IDX file or validation_size is too large.
    """
    if fake_data:
        raise InvalidArgumentError("read_data_sets: fake_data=True; data of files is required")
    missing = [n for names in FILES.values() for n in names if not (Path(train_dir) / n).is_file()]
    if missing:
        raise NotFoundError(
            f"read_data_sets: {', '.join(missing)} not found in '{train_dir}'; the four files of MNIST are required "
            "there, since nothing is downloaded"
        )
    parts = []
    for images, labels in FILES.values():
        with open(Path(train_dir) / images, "rb") as i, open(Path(train_dir) / labels, "rb") as j:
            parts.append((extract_images(i), extract_labels(j, one_hot)))
    (images_read, labels_read), test = parts
    if not 0 <= validation_size <= len(images_read):
        raise InvalidArgumentError(
            f"read_data_sets: validation_size={validation_size}; 0 to {len(images_read)} is required"
        )
    train = images_read[validation_size:], labels_read[validation_size:]
    validation = images_read[:validation_size], labels_read[:validation_size]
    options: dict[str, Any] = {"dtype": dtype, "reshape": reshape, "seed": seed}
    return Datasets(*(DataSet(*pair, **options) for pair in (train, validation, test)))


def _values(f: BinaryIO, rank: int) -> npt.NDArray[np.uint8]:
    """Returns the bytes of an IDX file, in its shape."""
    name = getattr(f, "name", "file")
    try:
        with gzip.GzipFile(fileobj=f) as unpacked:
            data = unpacked.read()
    except OSError as e:
        raise InvalidArgumentError(f"'{name}': {e}; an IDX file that is packed by gzip is required") from None
    words = np.frombuffer(data[: 4 * (rank + 1)], ">i4")
    if len(words) <= rank or words[0] != _HEADS[rank] or len(data) != 4 * (rank + 1) + words[1:].prod():
        raise InvalidArgumentError(f"'{name}': {len(data)} bytes; an IDX file of bytes of rank {rank} is required")
    return np.frombuffer(data, np.uint8, offset=4 * (rank + 1)).reshape(words[1:])
