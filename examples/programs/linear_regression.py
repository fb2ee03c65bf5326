"""Linear regression by gradient descent: progression of diabetes from ten measurements of 442 patients.

The weights found are those of the closed solution.
"""

import numpy as np
from sklearn.datasets import load_diabetes

import timberframe as tf

STEPS, RATE = 1500, 0.05

measured, progression = load_diabetes(return_X_y=True)
features = (measured / measured.std(axis=0)).astype(np.float32)
wanted = ((progression - progression.mean()) / progression.std()).astype(np.float32)

x = tf.placeholder(tf.float32, [None, 10], name="x")
y = tf.placeholder(tf.float32, [None], name="y")
weights = tf.Variable(tf.zeros([10, 1]), name="weights")
bias = tf.Variable(0.0, name="bias")
predicted = tf.squeeze(tf.matmul(x, weights), axis=1) + bias
loss = tf.reduce_mean(tf.square(predicted - y))
train = tf.train.MomentumOptimizer(RATE, momentum=0.9).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS + 1):
        _, value = sess.run([train, loss], feed_dict={x: features, y: wanted})
        if step in (0, 10, 100, STEPS):
            print("step %d: loss %.4f" % (step, value))
    found = np.append(sess.run(weights).ravel(), sess.run(bias))

closed, *_ = np.linalg.lstsq(np.column_stack([features, np.ones(len(features))]), wanted, rcond=None)
difference = np.abs(found - closed).max()
print("largest difference from the closed solution: %.3f" % difference)
assert difference < 0.02
