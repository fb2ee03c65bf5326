"""An autoencoder: handwritten digits through eight numbers and back."""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, EPOCHS, CODE = 64, 30, 8

images = (load_digits().data / 16).astype(np.float32)
train, test = images[:1500], images[1500:]

X = tf.placeholder("float", [None, 64])


def layer(inputs, size, seed, activation):
    n = inputs.get_shape().as_list()[1]
    w = tf.Variable(tf.random_normal([n, size], stddev=1 / np.sqrt(n), seed=seed))
    b = tf.Variable(tf.zeros([size]))
    return activation(tf.add(tf.matmul(inputs, w), b))


def encoder(x):
    return layer(layer(x, 32, 1, tf.nn.tanh), CODE, 2, tf.nn.tanh)


def decoder(code):
    return layer(layer(code, 32, 3, tf.nn.tanh), 64, 4, tf.nn.sigmoid)


decoded = decoder(encoder(X))
loss = tf.reduce_mean(tf.pow(X - decoded, 2))
optimizer = tf.train.RMSPropOptimizer(3e-3).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(1, EPOCHS + 1):
        for i in range(0, len(train) - BATCH + 1, BATCH):
            sess.run(optimizer, feed_dict={X: train[i : i + BATCH]})
        if epoch in (1, 10, EPOCHS):
            print("epoch %d: error %.4f" % (epoch, sess.run(loss, {X: train})))
    error, first = sess.run([loss, decoded], {X: test})

spread = test.var(axis=0).mean()
print("error of the test digits %.4f; that of their mean is %.4f" % (error, spread))
for row in first[0].reshape(8, 8):
    print("".join(" .:*#"[int(v * 4.99)] for v in row).rstrip())
assert error < spread / 2
