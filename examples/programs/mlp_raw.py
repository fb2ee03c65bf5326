"""A multilayer perceptron of variables and products: handwritten digits."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS, RATE = 64, 12, 3e-3
SIZES = [64, 96, 48, 10]

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32), np.eye(10, dtype=np.float32)[labels], test_size=0.3, random_state=0
)

X = tf.placeholder("float", [None, 64])
Y = tf.placeholder("float", [None, 10])
weights = [
    tf.Variable(tf.random_normal([n, m], stddev=np.sqrt(2 / n), seed=i), name="w%d" % i)
    for i, (n, m) in enumerate(zip(SIZES[:-1], SIZES[1:]))
]
biases = [tf.Variable(tf.zeros([m]), name="b%d" % i) for i, m in enumerate(SIZES[1:])]


def multilayer_perceptron(layer):
    for w, b in zip(weights[:-1], biases[:-1]):
        layer = tf.nn.relu(tf.add(tf.matmul(layer, w), b))
    return tf.matmul(layer, weights[-1]) + biases[-1]


logits = multilayer_perceptron(X)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=Y))
train_op = tf.train.AdamOptimizer(learning_rate=RATE).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1)), "float"))
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for epoch in range(EPOCHS):
        total = 0.0
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            _, c = sess.run([train_op, loss_op], feed_dict={X: train_x[i : i + BATCH], Y: train_y[i : i + BATCH]})
            total += c
        if epoch % 4 == 3:
            print("epoch %d: loss %.4f" % (epoch + 1, total / (len(train_x) // BATCH)))
    reached = accuracy.eval({X: test_x, Y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.95
