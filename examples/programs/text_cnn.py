"""Convolutions over a text (Kim 2014): is a word that the network never saw spelled forwards or backwards?"""

import re

import numpy as np
from sklearn import datasets

import timberframe as tf

LENGTH, EMBEDDING, FILTERS, SIZES, BATCH, STEPS = 10, 16, 24, (2, 3, 4), 64, 150

names = ("digits", "iris", "wine", "breast_cancer", "diabetes")
text = " ".join(getattr(datasets, "load_" + name)().DESCR.lower() for name in names)
words = sorted({w for w in re.findall("[a-z]+", text) if 4 <= len(w) <= LENGTH - 1 and w != w[::-1]})
spelled = np.array([[[ord(c) - 96 for c in w.ljust(LENGTH, "`")] for w in (word, word[::-1])] for word in words])


class TextCNN(object):
    """An embedding, convolutions of several widths, the maximum of each over the letters, and softmax."""

    def __init__(self):
        self.input_x = tf.placeholder(tf.int32, [None, LENGTH], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, 2], name="input_y")
        self.keep = tf.placeholder(tf.float32, name="dropout_keep_prob")
        l2_loss = tf.constant(0.0)
        with tf.device("/cpu:0"), tf.name_scope("embedding"):
            table = tf.Variable(tf.random_uniform([27, EMBEDDING], -1.0, 1.0, seed=1), name="W")
            embedded = tf.expand_dims(tf.nn.embedding_lookup(table, self.input_x), -1)
        pooled = []
        for i, size in enumerate(SIZES):
            with tf.name_scope("conv-maxpool-%s" % size):
                W = tf.Variable(tf.truncated_normal([size, EMBEDDING, 1, FILTERS], stddev=0.1, seed=2 + i), name="W")
                b = tf.Variable(tf.constant(0.1, shape=[FILTERS]), name="b")
                conv = tf.nn.conv2d(embedded, W, strides=[1, 1, 1, 1], padding="VALID", name="conv")
                h = tf.nn.relu(tf.nn.bias_add(conv, b), name="relu")
                pooled.append(tf.nn.max_pool(h, [1, LENGTH - size + 1, 1, 1], [1, 1, 1, 1], "VALID", name="pool"))
        total = FILTERS * len(SIZES)
        flat = tf.reshape(tf.concat(pooled, 3), [-1, total])
        with tf.name_scope("output"):
            W = tf.get_variable("W", [total, 2], initializer=tf.glorot_uniform_initializer(seed=9))
            b = tf.Variable(tf.constant(0.1, shape=[2]), name="b")
            l2_loss += tf.nn.l2_loss(W) + tf.nn.l2_loss(b)
            self.scores = tf.nn.xw_plus_b(tf.nn.dropout(flat, self.keep, seed=8), W, b, name="scores")
        losses = tf.nn.softmax_cross_entropy_with_logits(logits=self.scores, labels=self.input_y)
        self.loss = tf.reduce_mean(losses) + 1e-3 * l2_loss
        hits = tf.equal(tf.argmax(self.scores, 1), tf.argmax(self.input_y, 1))
        self.accuracy = tf.reduce_mean(tf.cast(hits, "float"), name="accuracy")


random = np.random.RandomState(0)
order = random.permutation(len(words))
tested, learned = order[:100], order[100:]
with tf.Graph().as_default(), tf.Session() as sess:
    cnn = TextCNN()
    global_step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.AdamOptimizer(5e-3)
    grads_and_vars = optimizer.compute_gradients(cnn.loss)
    train_op = optimizer.apply_gradients(grads_and_vars, global_step=global_step)
    sess.run(tf.global_variables_initializer())
    for _ in range(STEPS):
        rows, ways = random.choice(learned, BATCH), random.randint(0, 2, BATCH)
        feed = {cnn.input_x: spelled[rows, ways], cnn.input_y: np.eye(2)[ways], cnn.keep: 0.7}
        _, loss = sess.run([train_op, cnn.loss], feed)
        step = tf.train.global_step(sess, global_step)
        if step % 50 == 0:
            print("step %d: loss %.3f" % (step, loss))
    feed = {cnn.input_x: spelled[tested].reshape(-1, LENGTH), cnn.input_y: np.tile(np.eye(2), (100, 1)), cnn.keep: 1.0}
    reached = sess.run(cnn.accuracy, feed)

print("accuracy %.3f" % reached)
assert reached > 0.75
