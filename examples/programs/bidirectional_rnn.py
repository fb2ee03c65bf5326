"""Two LSTMs over the columns of each handwritten digit, one from the left and one from the right."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS, HIDDEN = 64, 8, 32

images, labels = load_digits(return_X_y=True)
columns = (images / 16).astype(np.float32).reshape(-1, 8, 8).transpose(0, 2, 1)
train_x, test_x, train_y, test_y = train_test_split(columns, labels, test_size=0.3, random_state=0)

x = tf.placeholder(tf.float32, [None, 8, 8])
y = tf.placeholder(tf.int64, [None])
with tf.variable_scope("net", initializer=tf.glorot_uniform_initializer(seed=1)):
    forward, backward = (tf.nn.rnn_cell.BasicLSTMCell(HIDDEN) for _ in range(2))
    outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(forward, backward, x, dtype=tf.float32)
    both_ends = tf.concat([state_fw.h, state_bw.h], axis=1)
    weights = tf.get_variable("weights", [2 * HIDDEN, 10])
    biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
logits = tf.nn.xw_plus_b(both_ends, weights, biases)
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
gradients, variables = zip(*tf.train.AdamOptimizer(5e-3).compute_gradients(loss))
gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
train = tf.train.AdamOptimizer(5e-3).apply_gradients(zip(gradients, variables))
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), y)))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        for i in range(0, len(train_x) - BATCH + 1, BATCH):
            sess.run(train, {x: train_x[i : i + BATCH], y: train_y[i : i + BATCH]})
        if epoch in (0, 3, EPOCHS - 1):
            value, size = sess.run([loss, norm], {x: train_x, y: train_y})
            print("epoch %d: loss %.4f, norm of the gradients %.4f" % (epoch + 1, value, size))
    reached = sess.run(accuracy, {x: test_x, y: test_y})

print("accuracy %.3f" % reached)
print(sorted(v.op.name for v in tf.trainable_variables())[:2])
assert reached > 0.94
