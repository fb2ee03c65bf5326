"""A convolutional network of tf.layers with batch normalisation: handwritten digits.

The moving averages are updated with each step; one network trains and, with reuse, another one tests.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS = 64, 6

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels, test_size=0.3, random_state=0
)

x = tf.placeholder(tf.float32, [None, 8, 8, 1])
y = tf.placeholder(tf.int64, [None])


def conv_net(inputs, training, reuse):
    with tf.variable_scope("ConvNet", reuse=reuse, initializer=tf.glorot_uniform_initializer(seed=1)):
        layer = inputs
        for filters in (16, 32):
            layer = tf.layers.conv2d(layer, filters, 3, padding="same", use_bias=False)
            layer = tf.layers.batch_normalization(layer, momentum=0.9, training=training)
            layer = tf.layers.max_pooling2d(tf.nn.relu(layer), 2, 2)
        layer = tf.layers.dense(tf.layers.flatten(layer), 64, activation=tf.nn.relu)
        layer = tf.layers.dropout(layer, rate=0.3, training=training, seed=2)
        return tf.layers.dense(layer, 10)


loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=conv_net(x, True, None)))
test_logits = conv_net(x, False, True)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(test_logits, 1), y), tf.float32))
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.AdamOptimizer(3e-3).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print("%d variables, %d of them trainable" % (len(tf.global_variables("ConvNet")), len(tf.trainable_variables())))
    for epoch in range(EPOCHS):
        values = []
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            _, value = sess.run([train, loss], {x: train_x[i : i + BATCH], y: train_y[i : i + BATCH]})
            values.append(value)
        if epoch % 2 == 1:
            print("epoch %d: loss %.4f" % (epoch + 1, np.mean(values)))
    reached = sess.run(accuracy, {x: test_x, y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.97
