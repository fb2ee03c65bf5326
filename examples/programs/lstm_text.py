"""A character-level LSTM that keeps its state from batch to batch, and then writes text of its own."""

import numpy as np
from sklearn.datasets import load_iris

import timberframe as tf

UNITS, LAYERS, BATCH, STEPS, EPOCHS = 64, 2, 10, 20, 25

text = load_iris().DESCR[:2010]
letters = sorted(set(text))
data = np.array([letters.index(c) for c in text])
rows = data[: (len(data) - 1) // BATCH * BATCH].reshape(BATCH, -1)
following = data[1 : rows.size + 1].reshape(BATCH, -1)

inputs = tf.placeholder(tf.int32, [None, None])
targets = tf.placeholder(tf.int32, [None, None])
with tf.variable_scope("rnnlm", initializer=tf.random_uniform_initializer(-0.15, 0.15, seed=1)):
    cells = [tf.nn.rnn_cell.LSTMCell(UNITS, forget_bias=1.0) for _ in range(LAYERS)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    initial = cell.zero_state(tf.shape(inputs)[0], tf.float32)
    table = tf.get_variable("embedding", [len(letters), UNITS])
    outputs, last = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, inputs), initial_state=initial)
    softmax_w = tf.get_variable("softmax_w", [UNITS, len(letters)])
    softmax_b = tf.get_variable("softmax_b", [len(letters)], initializer=tf.zeros_initializer())
logits = tf.matmul(tf.reshape(outputs, [-1, UNITS]), softmax_w) + softmax_b
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=tf.reshape(targets, [-1])))
rate = tf.Variable(0.0, trainable=False)
variables = tf.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
train = tf.train.AdamOptimizer(rate).apply_gradients(zip(gradients, variables))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        sess.run(tf.assign(rate, 0.01 * 0.97**epoch))
        state, losses = None, []
        for i in range(0, rows.shape[1] - STEPS + 1, STEPS):
            fed = {inputs: rows[:, i : i + STEPS], targets: following[:, i : i + STEPS]}
            if state is not None:  # goes on where the batch before ended
                fed.update(zip(tf.nest.flatten(initial), tf.nest.flatten(state)))
            value, state, _ = sess.run([loss, last, train], fed)
            losses.append(value)
        if epoch in (0, 4, 9):
            print("epoch %d: perplexity %.2f" % (epoch + 1, np.exp(np.mean(losses))))
    written, state = "Iris", None
    for c in "Iris":
        fed = {inputs: [[letters.index(c)]]}
        if state is not None:
            fed.update(zip(tf.nest.flatten(initial), tf.nest.flatten(state)))
        found, state = sess.run([logits, last], fed)
    for _ in range(30):
        written += letters[int(found[0].argmax())]
        fed = {inputs: [[letters.index(written[-1])]], **dict(zip(tf.nest.flatten(initial), tf.nest.flatten(state)))}
        found, state = sess.run([logits, last], fed)

print("of %d letters; it wrote %d of its own" % (len(letters), len(written) - 4))
assert np.exp(np.mean(losses)) < 8
