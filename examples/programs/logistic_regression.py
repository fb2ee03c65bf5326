"""Logistic regression of handwritten digits: one matrix, softmax and cross entropy."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS, RATE = 64, 15, 1.0

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32), np.eye(10, dtype=np.float32)[labels], test_size=0.3, random_state=0
)

x = tf.placeholder(tf.float32, [None, 64])
y = tf.placeholder(tf.float32, [None, 10])
W = tf.Variable(tf.zeros([64, 10]))
b = tf.Variable(tf.zeros([10]))
pred = tf.nn.softmax(tf.matmul(x, W) + b)
cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred), reduction_indices=1))
optimizer = tf.train.GradientDescentOptimizer(RATE).minimize(cost)
correct = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    batches = len(train_x) // BATCH
    for epoch in range(EPOCHS):
        mean = 0.0
        for i in range(batches):
            rows = slice(i * BATCH, (i + 1) * BATCH)
            _, c = sess.run([optimizer, cost], feed_dict={x: train_x[rows], y: train_y[rows]})
            mean += c / batches
        if (epoch + 1) % 5 == 0:
            print("epoch %d: cost %.4f" % (epoch + 1, mean))
    reached = accuracy.eval({x: test_x, y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.94
