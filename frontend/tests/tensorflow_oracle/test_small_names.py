"""Patches, random boxes, printed values and sequence examples are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as ours


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("size", "stride", "rate"), [((2, 3), (1, 1), (1, 1)), ((3, 2), (2, 3), (1, 1)), ((2, 2), (1, 2), (2, 1))]
)
def test_patches_and_gradients_are_the_same(tensorflow: Any, padding: str, size: Any, stride: Any, rate: Any) -> None:
    images = np.random.default_rng(1).normal(size=(2, 6, 5, 3)).astype(np.float32)
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(images)
            y = tf.extract_image_patches(x, [1, *size, 1], [1, *stride, 1], [1, *rate, 1], padding)
            weights = tf.cos(tf.cast(tf.reshape(tf.range(tf.size(y)), tf.shape(y)), tf.float32))
            grad = tf.gradients(tf.reduce_sum(y * weights), x)[0]
            found.append([y.shape.as_list(), *session.run([y, grad])])
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"min_object_covered": 0.7}, {"area_range": [0.3, 0.9], "aspect_ratio_range": [0.5, 2.0]},
        {"min_object_covered": 1.0, "max_attempts": 3, "area_range": [0.1, 0.2]},
    ],
)  # fmt: skip
def test_random_boxes_are_the_same(tensorflow: Any, settings: dict[str, Any]) -> None:
    boxes = np.array([[[0.1, 0.2, 0.6, 0.7], [0.5, 0.5, 0.9, 1.0]]], np.float32)
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            made = tf.image.sample_distorted_bounding_box([37, 53, 3], boxes, seed=5, **settings)
            runs = [session.run(made) for _ in range(6)]
            found.append([[np.asarray(x).tolist() for x in run] for run in runs])
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [-1, 1, 2, 3])
@pytest.mark.parametrize(
    "value",
    [
        np.arange(10), np.arange(24).reshape(2, 3, 4), np.array([0.1, 1.0, 1e10, np.pi], np.float32), np.array([1 / 3]),
        np.array(["a", 'b\n"\\é']), np.array("q"), np.array([True, False]), np.float32(2.5), np.zeros((2, 0)),
        np.zeros((3, 2, 2), np.int32), np.array([np.nan, np.inf, -np.inf], np.float32), np.array([1.5], np.float16),
    ],
)  # fmt: skip
def test_values_have_the_same_texts(tensorflow: Any, value: Any, count: int) -> None:
    texts = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            texts.append(session.run(tf.strings.format("<{}>", tf.constant(value), summarize=count)))
    assert texts[0] == texts[1]


def test_print_writes_the_same_text(tensorflow: Any, tmp_path: Any) -> None:
    texts = []
    for name, tf in (("ours", ours), ("theirs", tensorflow)):
        path = tmp_path / name
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant([[1.5, 2.0], [3.0, 4.0]])
            sparse = tf.SparseTensor([[0, 1]], [5], [1, 2])
            things = ["x is", x, {"a": x[0], "b": 3}, [1, tf.constant("q")], sparse, "{}", ("s", 2.5)]
            session.run(tf.print(*things, output_stream=f"file://{path}", summarize=1, sep="|", end="!"))
        texts.append(path.read_text())
    assert texts[0] == texts[1]


def message(tf: Any, steps: int, **context: int) -> bytes:
    def integers(*values: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    lists = {
        "pairs": [integers(i, i + 1) for i in range(steps)],
        "words": [tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w"] * i)) for i in range(steps)],
    }
    return tf.train.SequenceExample(  # type: ignore[no-any-return]  # a message's bytes
        context=tf.train.Features(feature={k: integers(v) for k, v in context.items()}),
        feature_lists=tf.train.FeatureLists(
            feature_list={k: tf.train.FeatureList(feature=v) for k, v in lists.items()}
        ),
    ).SerializeToString()


def parsed(tf: Any, single: bool) -> Any:
    texts = [message(tf, 3, n=7), message(tf, 1, n=8, more=9)]
    context = {"n": tf.FixedLenFeature([], tf.int64), "more": tf.VarLenFeature(tf.int64)}
    lists = {
        "pairs": tf.FixedLenSequenceFeature([2], tf.int64), "words": tf.VarLenFeature(tf.string),
        "absent": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    }  # fmt: skip
    with tf.Graph().as_default(), tf.Session() as session:
        if single:
            made = tf.parse_single_sequence_example(texts[0], context, lists)
        else:
            made = tf.io.parse_sequence_example(texts, context, lists) if tf is not ours else (
                tf.parse_sequence_example(texts, context, lists)
            )  # fmt: skip
        found = session.run(made)
    return [{k: shown(v) for k, v in part.items()} for part in found]


def shown(value: Any) -> Any:
    return [np.asarray(x).tolist() for x in value] if isinstance(value, tuple) else np.asarray(value).tolist()


@pytest.mark.parametrize("single", [True, False])
def test_sequence_examples_are_read_alike(tensorflow: Any, single: bool) -> None:
    assert parsed(ours, single) == parsed(tensorflow, single)


@pytest.mark.parametrize("scaled", [True, False])
def test_batch_norm_with_global_normalization_is_the_same(tensorflow: Any, scaled: bool) -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 3, 2)).astype(np.float32)
    found = []
    for tf in (ours, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            parts = [tf.constant(v) for v in ([0.5, 1.0], [1.0, 2.0], [0.1, 0.2], [3.0, 4.0])]
            found.append(session.run(tf.nn.batch_norm_with_global_normalization(x, *parts, 1e-3, scaled)))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_device_specs_merge_the_same(tensorflow: Any) -> None:
    found = []
    for tf in (ours, tensorflow):
        spec = tf.DeviceSpec.from_string("/job:worker/replica:0/device:CPU:1")
        spec.merge_from(tf.DeviceSpec(task=3, device_type="gpu"))
        merged = spec.to_string()
        spec.device_index = None
        spec.job = "ps"
        found.append((merged, spec.to_string(), spec.make_merged_spec(tf.DeviceSpec(job="a")).to_string()))
    assert found[0] == found[1]
