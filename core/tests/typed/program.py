"""A user's program, which tests check against the installed packages: see test_types_for_users."""

import numpy as np

import timberframe as tf


def network(x: tf.Tensor) -> tf.Tensor:
    hidden = tf.layers.dense(x, 4, tf.nn.relu)
    weights = tf.get_variable("weights", [4, 2], initializer=tf.zeros_initializer())
    return 1.0 - tf.matmul(hidden, weights) * 2.0


images = tf.placeholder(tf.float32, [None, 3], name="images")
scale = tf.Variable(1.0)
loss = tf.reduce_mean(tf.square(network(images) + scale / 2.0))
step: tf.Operation = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.device("/cpu:0"), tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step, {images: np.ones((1, 3))})
    print(session.run([loss, loss > 0.0, -scale, images[0, :2]], {images: np.ones((1, 3))}))
