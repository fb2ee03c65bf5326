"""A multilayer perceptron of tf.layers with dropout and weight decay: handwritten digits."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS = 64, 12

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32), labels, test_size=0.3, random_state=0
)

x = tf.placeholder(tf.float32, [None, 64], name="x")
y = tf.placeholder(tf.int64, [None], name="y")
training = tf.placeholder_with_default(False, [], name="training")


def network(layer):
    for i, units in enumerate([128, 64]):
        layer = tf.layers.dense(
            layer, units, activation=tf.nn.relu, name="hidden%d" % i,
            kernel_initializer=tf.glorot_uniform_initializer(seed=i),
            kernel_regularizer=lambda w: 1e-4 * tf.nn.l2_loss(w),
        )  # fmt: skip
        layer = tf.layers.dropout(layer, rate=0.2, training=training, seed=i)
    return tf.layers.dense(layer, 10, name="logits", kernel_initializer=tf.glorot_uniform_initializer(seed=9))


logits = network(x)
cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
loss = cross_entropy + tf.losses.get_regularization_loss()
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(5e-3, step, 100, 0.7, staircase=True)
train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
correct = tf.nn.in_top_k(logits, y, 1)
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            sess.run(train, {x: train_x[i : i + BATCH], y: train_y[i : i + BATCH], training: True})
        if epoch % 4 == 3:
            value, count = sess.run([loss, step], {x: train_x, y: train_y})
            print("epoch %d, %d steps: loss %.4f" % (epoch + 1, count, value))
    reached = sess.run(accuracy, {x: test_x, y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.96
