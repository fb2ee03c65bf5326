"""A convolutional network of variables and tf.nn: handwritten digits."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS, RATE, KEEP = 64, 8, 2e-3, 0.8

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32), np.eye(10, dtype=np.float32)[labels], test_size=0.3, random_state=0
)

X = tf.placeholder(tf.float32, [None, 64])
Y = tf.placeholder(tf.float32, [None, 10])
keep_prob = tf.placeholder(tf.float32)


def weight(name, shape, inputs, seed):
    return tf.Variable(tf.truncated_normal(shape, stddev=np.sqrt(2.0 / inputs), seed=seed), name=name)


def conv2d(x, w, b):
    x = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
    return tf.nn.relu(tf.nn.bias_add(x, b))


def maxpool2d(x, k=2):
    return tf.nn.max_pool(x, ksize=[1, k, k, 1], strides=[1, k, k, 1], padding="SAME")


weights = {
    "wc1": weight("wc1", [3, 3, 1, 16], 9, 1),
    "wc2": weight("wc2", [3, 3, 16, 32], 144, 2),
    "wd1": weight("wd1", [2 * 2 * 32, 64], 128, 3),
    "out": weight("out", [64, 10], 64, 4),
}
biases = {name: tf.Variable(tf.zeros([n])) for name, n in [("bc1", 16), ("bc2", 32), ("bd1", 64), ("out", 10)]}


def conv_net(x):
    x = tf.reshape(x, shape=[-1, 8, 8, 1])
    conv1 = maxpool2d(conv2d(x, weights["wc1"], biases["bc1"]))
    conv2 = maxpool2d(conv2d(conv1, weights["wc2"], biases["bc2"]))
    fc1 = tf.reshape(conv2, [-1, weights["wd1"].get_shape().as_list()[0]])
    fc1 = tf.nn.relu(tf.add(tf.matmul(fc1, weights["wd1"]), biases["bd1"]))
    fc1 = tf.nn.dropout(fc1, keep_prob, seed=5)
    return tf.add(tf.matmul(fc1, weights["out"]), biases["out"])


logits = conv_net(X)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=Y))
train_op = tf.train.AdamOptimizer(learning_rate=RATE).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            sess.run(train_op, {X: train_x[i : i + BATCH], Y: train_y[i : i + BATCH], keep_prob: KEEP})
        if epoch % 2 == 1:
            print("epoch %d: loss %.4f" % (epoch + 1, sess.run(loss_op, {X: train_x, Y: train_y, keep_prob: 1.0})))
    reached = sess.run(accuracy, {X: test_x, Y: test_y, keep_prob: 1.0})

print("accuracy %.3f" % reached)
assert reached > 0.96
