"""The nearest neighbour of each test digit among the training digits, by the sum of the pixels' differences."""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
train_x, train_y, test_x, test_y = images[:1500], labels[:1500], images[1500:], labels[1500:]

examples = tf.placeholder("float", [None, 64])
query = tf.placeholder("float", [64])
distance = tf.reduce_sum(tf.abs(tf.add(examples, tf.negative(query))), reduction_indices=1)
nearest = tf.argmin(distance, 0)

right = 0
with tf.Session() as sess:
    for i in range(len(test_x)):
        index = sess.run(nearest, feed_dict={examples: train_x, query: test_x[i]})
        right += train_y[index] == test_y[i]

accuracy = right / len(test_x)
print("%d of %d are right, accuracy %.3f" % (right, len(test_x), accuracy))
assert accuracy > 0.92
