"""A convolutional network on two devices: each takes half of a batch, and the mean of their gradients is applied.

Devices that a machine lacks are replaced by those that it has (soft placement).
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

DEVICES, BATCH, EPOCHS = ["/gpu:0", "/gpu:1"], 128, 6

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels, test_size=0.3, random_state=0
)


def conv_net(x):
    with tf.variable_scope("ConvNet", reuse=tf.AUTO_REUSE, initializer=tf.glorot_uniform_initializer(seed=1)):
        x = tf.layers.conv2d(x, 16, 3, padding="same", activation=tf.nn.relu, name="conv1")
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu, name="conv2")
        x = tf.layers.max_pooling2d(x, 2, 2)
        return tf.layers.dense(tf.layers.flatten(x), 10, name="logits")


def average_gradients(tower_grads):
    average = []
    for grad_and_vars in zip(*tower_grads):
        grad = tf.reduce_mean(tf.concat([tf.expand_dims(g, 0) for g, _ in grad_and_vars], 0), 0)
        average.append((grad, grad_and_vars[0][1]))
    return average


def variables_on_cpu(device):
    """Variables and their slots are on the CPU, what computes with them on a device."""

    def choose(op):
        return "/cpu:0" if op.type in ("Variable", "VariableV2", "VarHandleOp") else device

    return choose


with tf.device("/cpu:0"):
    X, Y = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int64, [None])
    optimizer = tf.train.AdamOptimizer(4e-3)
    tower_grads, losses, half = [], [], BATCH // len(DEVICES)
    for i, device in enumerate(DEVICES):
        with tf.device(variables_on_cpu(device)):
            part = slice(i * half, (i + 1) * half)
            logits = conv_net(X[part])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=Y[part], logits=logits))
            losses.append(loss)
            tower_grads.append(optimizer.compute_gradients(loss))
    train = optimizer.apply_gradients(average_gradients(tower_grads))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(conv_net(X), 1), Y), tf.float32))
    mean_loss = tf.add_n(losses) / len(losses)

with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        values = []
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            value, _ = sess.run([mean_loss, train], {X: train_x[i : i + BATCH], Y: train_y[i : i + BATCH]})
            values.append(value)
        print("epoch %d: loss %.4f" % (epoch + 1, np.mean(values)))
    reached = sess.run(accuracy, {X: test_x, Y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.9
