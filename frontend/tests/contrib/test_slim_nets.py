"""`tf.contrib.slim.nets`: shapes, variables and end points of the networks as TensorFlow has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe.compat.programs import resolve

pytestmark = pytest.mark.usefixtures("graph")
slim = tf.contrib.slim
nets = slim.nets


def sizes() -> dict[str, list[int]]:
    return {v.op.name: v.shape.as_list() for v in tf.global_variables()}


def parameters() -> int:
    return sum(int(np.prod(v.shape.as_list())) for v in tf.trainable_variables())


@pytest.mark.parametrize(("version", "trainable"), [(nets.resnet_v1, 23_528_522), (nets.resnet_v2, 23_539_850)])
def test_residual_networks_have_the_parameters_of_their_papers(version: Any, trainable: int) -> None:
    name = f"{version.__name__.rpartition('.')[2]}_50"
    with slim.arg_scope(version.resnet_arg_scope()):
        logits, end_points = getattr(version, name)(tf.zeros([2, 64, 64, 3]), 10, is_training=False)
    assert logits.shape.as_list() == [2, 1, 1, 10]
    assert parameters() == trainable
    assert sizes()[f"{name}/block4/unit_3/bottleneck_{name[7:9]}/conv2/weights"] == [3, 3, 512, 512]
    assert end_points[f"{name}/block1"].shape.as_list() == [2, 8, 8, 256]
    assert {"predictions", f"{name}/logits"} <= end_points.keys()


def test_an_output_stride_keeps_the_resolution_and_spreads_the_weights() -> None:
    images = tf.zeros([1, 64, 64, 3])
    net, _ = nets.resnet_v1.resnet_v1_50(images, global_pool=False, is_training=False, output_stride=8)
    assert net.shape.as_list() == [1, 8, 8, 2048]
    with pytest.raises(ValueError, match="output_stride is 6; it must be a multiple of 4"):
        nets.resnet_v1.resnet_v1_50(images, output_stride=6, scope="other")


def test_the_base_of_inception_v3_ends_at_the_end_point_given() -> None:
    images = tf.zeros([1, 299, 299, 3])
    base = resolve("contrib.slim.python.slim.nets.inception_v3").inception_v3_base
    net, end_points = base(images, final_endpoint="Mixed_6a")
    assert net.shape.as_list() == [1, 17, 17, 768]
    assert list(end_points)[-2:] == ["Mixed_5d", "Mixed_6a"]
    assert sizes()["InceptionV3/Mixed_5c/Branch_1/Conv_1_0c_5x5/weights"] == [5, 5, 48, 64]
    with pytest.raises(ValueError, match="Unknown final endpoint Mixed_9"):
        base(images, final_endpoint="Mixed_9")


def test_inception_v3_has_logits_beside_its_own_and_the_parameters_of_tensorflow() -> None:
    with slim.arg_scope(nets.inception.inception_v3_arg_scope()):
        logits, end_points = nets.inception.inception_v3(tf.zeros([1, 299, 299, 3]), 10, is_training=False)
    assert logits.shape.as_list() == end_points["AuxLogits"].shape.as_list() == [1, 10]
    assert end_points["Mixed_7c"].shape.as_list() == [1, 8, 8, 2048]
    convolutions = [v for v in tf.trainable_variables() if "AuxLogits" not in v.op.name and "/Logits" not in v.op.name]
    assert sum(int(np.prod(v.shape.as_list())) for v in convolutions) == 21_768_352


def test_vgg_and_alexnet_have_the_parameters_of_their_papers() -> None:
    images = tf.placeholder(tf.float32, [None, 224, 224, 3])
    logits, end_points = nets.vgg.vgg_16(images)
    assert (logits.shape.as_list(), parameters()) == ([None, 1000], 138_357_544)
    assert end_points["vgg_16/fc8"] is logits
    with tf.Graph().as_default():
        nets.alexnet.alexnet_v2(tf.zeros([1, 224, 224, 3]))
        assert sizes()["alexnet_v2/fc6/weights"] == [5, 5, 256, 4096]


def test_a_residual_network_trains() -> None:
    blocks = [nets.resnet_v1.resnet_v1_block("block1", base_depth=2, num_units=2, stride=2)]
    images = tf.constant(np.random.default_rng(0).normal(size=(4, 32, 32, 3)), tf.float32)
    with slim.arg_scope(nets.resnet_utils.resnet_arg_scope()):
        net, _ = nets.resnet_v1.resnet_v1(images, blocks, 3)
    loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 0], tf.squeeze(net, [1, 2]))
    train = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(train) for _ in range(20)]
    assert losses[-1] < losses[0]
