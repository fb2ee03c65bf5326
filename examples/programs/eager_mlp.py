"""Eager execution: a perceptron without a graph or session, gradients by a tape, data by a loop."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

tf.enable_eager_execution()

BATCH, EPOCHS = 64, 8

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32), labels.astype(np.int64), test_size=0.3, random_state=0
)
dataset = tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(2000, seed=1)
dataset = dataset.batch(BATCH, drop_remainder=True).repeat(EPOCHS)


def weights(n, m, seed):
    return tf.Variable(tf.random_normal([n, m], stddev=np.sqrt(2 / n), seed=seed))


w1, b1 = weights(64, 64, 1), tf.Variable(tf.zeros([64]))
w2, b2 = weights(64, 10, 2), tf.Variable(tf.zeros([10]))
variables = [w1, b1, w2, b2]


def network(x):
    return tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2


def loss_of(x, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x)))


optimizer = tf.train.AdamOptimizer(5e-3)
print("executing eagerly: %s" % tf.executing_eagerly())
losses, steps = [], len(train_x) // BATCH
for x, y in dataset:
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    losses.append(loss.numpy())
    if len(losses) % (2 * steps) == 0:
        print("epoch %d: loss %.4f" % (len(losses) // steps, np.mean(losses[-steps:])))

logits = network(tf.constant(test_x))
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), test_y), tf.float32)).numpy()
print("accuracy %.3f" % accuracy)
assert accuracy > 0.95
