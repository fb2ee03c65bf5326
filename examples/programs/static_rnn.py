"""An LSTM unrolled over the eight rows of each handwritten digit."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

rnn = tf.nn.rnn_cell
BATCH, EPOCHS, HIDDEN, ROWS = 32, 12, 48, 8

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32).reshape(-1, ROWS, 8), np.eye(10, dtype=np.float32)[labels], test_size=0.3,
    random_state=0,
)  # fmt: skip

X = tf.placeholder("float", [None, ROWS, 8])
Y = tf.placeholder("float", [None, 10])
weights = tf.Variable(tf.random_normal([HIDDEN, 10], stddev=0.2, seed=1))
biases = tf.Variable(tf.zeros([10]))


def RNN(x):
    x = tf.unstack(x, ROWS, 1)
    with tf.variable_scope("rnn", initializer=tf.glorot_uniform_initializer(seed=2)):
        lstm_cell = rnn.BasicLSTMCell(HIDDEN, forget_bias=1.0)
        outputs, _ = tf.nn.static_rnn(lstm_cell, x, dtype=tf.float32)
    return tf.matmul(outputs[-1], weights) + biases


logits = RNN(X)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=Y))
train_op = tf.train.AdamOptimizer(learning_rate=5e-3).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            sess.run(train_op, feed_dict={X: train_x[i : i + BATCH], Y: train_y[i : i + BATCH]})
        if epoch in (0, 4, EPOCHS - 1):
            print("epoch %d: loss %.4f" % (epoch + 1, sess.run(loss_op, {X: train_x, Y: train_y})))
    reached = sess.run(accuracy, feed_dict={X: test_x, Y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.88
