"""A conditional random field on a bidirectional LSTM: where words begin in a text whose spaces are taken out."""

import re

import numpy as np
from sklearn import datasets

import timberframe as tf

crf = tf.contrib.crf
BATCH, UNITS, STEPS, LONGEST = 32, 40, 120, 30

names = ("digits", "iris", "wine", "breast_cancer", "diabetes")
text = " ".join(getattr(datasets, "load_" + name)().DESCR for name in names)
words = re.findall("[a-z]+", text.lower())
sentences, rest = [], words
while rest:
    count = 1
    while count < len(rest) and sum(map(len, rest[: count + 1])) <= LONGEST:
        count += 1
    sentences.append(rest[:count])
    rest = rest[count:]
lengths = np.array([sum(map(len, s)) for s in sentences], np.int32)
letters = np.zeros((len(sentences), max(lengths)), np.int32)
begins = np.zeros_like(letters)  # a tag for each letter: 1 where a word begins
for i, sentence in enumerate(sentences):
    letters[i, : lengths[i]] = [ord(c) - 96 for c in "".join(sentence)]
    begins[i, np.cumsum([0] + [len(w) for w in sentence[:-1]])] = 1

x, tags = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
length = tf.placeholder(tf.int32, [None])
with tf.variable_scope("net", initializer=tf.glorot_uniform_initializer(seed=1)):
    table = tf.get_variable("letters", [27, 16])
    cells = [tf.nn.rnn_cell.LSTMCell(UNITS) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, tf.nn.embedding_lookup(table, x), length, dtype=tf.float32)
    scores = tf.layers.dense(tf.concat(outputs, 2), 2)
    likelihood, transitions = crf.crf_log_likelihood(scores, tags, length)
loss = tf.reduce_mean(-likelihood)
train = tf.train.AdamOptimizer(0.02).minimize(loss)
best, _ = crf.crf_decode(scores, transitions, length)
mask = tf.sequence_mask(length, tf.shape(x)[1])
right = tf.reduce_mean(tf.to_float(tf.boolean_mask(tf.equal(best, tags), mask)))

random = np.random.RandomState(0)
tested = np.arange(len(sentences)) % 6 == 0
learned = np.flatnonzero(~tested)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS + 1):
        rows = random.choice(learned, BATCH)
        value, _ = sess.run([loss, train], {x: letters[rows], tags: begins[rows], length: lengths[rows]})
        if step % 40 == 0:
            print("step %d: loss %.3f" % (step, value))
    fed = {x: letters[tested], tags: begins[tested], length: lengths[tested]}
    reached, found, unary, pairs = sess.run([right, best, scores, transitions], fed)

path, _ = crf.viterbi_decode(unary[0, : lengths[0]], pairs)
assert path == found[0, : lengths[0]].tolist()
print("a letter of %d begins a word" % round(lengths.sum() / begins.sum()))
print("accuracy %.3f" % reached)
assert reached > 0.9
print("".join(" " * tag + chr(c + 96) for c, tag in zip(letters[0, : lengths[0]], path)).strip())
