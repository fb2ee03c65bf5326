"""tf.examples.tutorials.mnist reads MNIST's files and deals out batches."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import timberframe as tf
from timberframe.examples.tutorials.mnist import input_data
from timberframe_core.errors import InvalidArgumentError, NotFoundError


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Twelve training images of 2 x 3, all of whose pixels are 5 times their label, and four test images."""
    for count, names in zip((12, 4), input_data.FILES.values(), strict=True):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = np.repeat(5 * labels, 6)
        for name, head, data in zip(names, ([0x803, count, 2, 3], [0x801, count]), (images, labels), strict=True):
            (tmp_path / name).write_bytes(gzip.compress(np.array(head, ">i4").tobytes() + data.tobytes()))
    return str(tmp_path)


def test_parts_have_scaled_images_and_labels(folder: str) -> None:
    mnist = tf.examples.tutorials.mnist.input_data.read_data_sets(folder, one_hot=True, validation_size=2)
    assert [part.num_examples for part in mnist] == [10, 2, 4]
    assert mnist.train.images.dtype == np.float32
    np.testing.assert_array_equal(mnist.validation.images, np.repeat(np.float32([[0], [5]]) / np.float32(255), 6, 1))
    np.testing.assert_array_equal(mnist.test.labels, np.eye(10)[:4])
    plain = input_data.read_data_sets(folder, dtype=tf.uint8, reshape=False, validation_size=0)
    assert plain.train.images.shape == (12, 2, 3, 1)
    np.testing.assert_array_equal(plain.train.images[:, 0, 0, 0], 5 * plain.train.labels)


def test_batches_go_over_the_end_of_an_epoch_and_show_each_image_once_in_it(folder: str) -> None:
    train = input_data.read_data_sets(folder, validation_size=0, seed=3).train
    batches = [train.next_batch(5) for _ in range(5)]
    assert [train.epochs_completed, *{len(images) for images, _ in batches}] == [2, 5]
    labels = np.concatenate([labels for _, labels in batches])
    for epoch in (labels[:12], labels[12:24]):
        assert sorted(epoch) == [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert list(labels[:12]) != list(labels[12:24])
    for images, shown in batches:  # images go with their labels
        np.testing.assert_allclose(images[:, 0], 5 * shown / np.float32(255), rtol=1e-6)
    again = input_data.read_data_sets(folder, validation_size=0, seed=3).train
    np.testing.assert_array_equal(again.next_batch(12)[1], labels[:12])


def test_batches_that_are_not_shuffled_are_in_the_files_order(folder: str) -> None:
    test = input_data.read_data_sets(folder, validation_size=0).test
    assert [list(test.next_batch(3, shuffle=False)[1]) for _ in range(2)] == [[0, 1, 2], [3, 0, 1]]


def test_mistakes_are_told_apart(folder: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"validation_size=5000; 0 to 12 is required"):
        input_data.read_data_sets(folder)
    with pytest.raises(InvalidArgumentError, match=r"batch_size=5, .*; 1 to 4 images"):
        input_data.read_data_sets(folder, validation_size=0).test.next_batch(5)
    with pytest.raises(
        NotFoundError, match=r"train-images-idx3-ubyte\.gz, .* not found in '.*nowhere'; the four files"
    ):
        input_data.read_data_sets(f"{folder}/nowhere")
    labels = Path(folder) / "t10k-labels-idx1-ubyte.gz"
    labels.write_bytes(b"none")
    with pytest.raises(InvalidArgumentError, match=r"labels-idx1-ubyte\.gz': .*; an IDX file that is packed by gzip"):
        input_data.read_data_sets(folder, validation_size=0)
    labels.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x09"))
    with pytest.raises(InvalidArgumentError, match="8 bytes; an IDX file of bytes of rank 1 is required"):
        input_data.read_data_sets(folder, validation_size=0)


def test_the_tutorials_network_learns(graph: tf.Graph) -> None:
    mnist = tf.examples.tutorials.mnist.mnist
    images, labels = (
        tf.constant(np.eye(10, mnist.IMAGE_PIXELS, dtype=np.float32)),
        tf.constant(np.arange(10, dtype=np.int32)),
    )
    logits = mnist.inference(images, 16, 8)
    loss = mnist.loss(logits, labels)
    step, right = mnist.training(loss, 0.5), mnist.evaluation(logits, labels)
    tf.set_random_seed(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(loss)
        for _ in range(50):
            session.run(step)
        assert session.run(loss) < before
        assert 0 <= session.run(right) <= 10
