"""Sequences of different lengths: is a handwritten digit a zero or a one, from its first three to eight rows?"""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

LONGEST, HIDDEN, STEPS, BATCH = 8, 24, 120, 64

images, labels = load_digits(n_class=2, return_X_y=True)
random = np.random.RandomState(1)
lengths = random.randint(3, LONGEST + 1, size=len(images))
rows = (images / 16).astype(np.float32).reshape(-1, LONGEST, 8)
rows[np.arange(LONGEST) >= lengths[:, None]] = 0  # padding

x = tf.placeholder(tf.float32, [None, LONGEST, 8])
y = tf.placeholder(tf.int32, [None])
seqlen = tf.placeholder(tf.int32, [None])

cell = tf.nn.rnn_cell.GRUCell(HIDDEN, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
outputs, last = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, sequence_length=seqlen)
# The output at each sequence's end, from all outputs: it is the last state.
batch_size = tf.shape(outputs)[0]
index = tf.range(0, batch_size) * LONGEST + (seqlen - 1)
at_end = tf.gather(tf.reshape(outputs, [-1, HIDDEN]), index)
weights = tf.get_variable("weights", [HIDDEN, 2], initializer=tf.random_normal_initializer(stddev=0.3, seed=2))
logits = tf.matmul(at_end, weights)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.AdamOptimizer(0.01).minimize(loss)
accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, y, 1), tf.float32))
same = tf.reduce_max(tf.abs(at_end - last))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    test = {x: rows[240:], y: labels[240:], seqlen: lengths[240:]}
    for step in range(STEPS):
        chosen = random.choice(240, BATCH, replace=False)
        _, value = sess.run([train, loss], {x: rows[chosen], y: labels[chosen], seqlen: lengths[chosen]})
        if step % 40 == 0:
            print("step %d: loss %.4f" % (step, value))
    reached, difference = sess.run([accuracy, same], test)

print("accuracy %.3f" % reached)
assert reached > 0.92
assert difference == 0
