"""Sequence to sequence with attention: words of the descriptions of five data sets, spelled backwards.

An LSTM reads a word; another one, with Luong's attention to what the first has read, writes it. In training it reads
the right letters, afterwards its own, and beam search keeps the likeliest spellings.
"""

import re

import numpy as np
from sklearn import datasets

import timberframe as tf

seq2seq = tf.contrib.seq2seq
BATCH, UNITS, STEPS, BEAMS, LONGEST = 64, 48, 150, 3, 6
PAD, GO, END = 0, 1, 2

names = ("digits", "iris", "wine", "breast_cancer", "diabetes")
text = " ".join(getattr(datasets, "load_" + name)().DESCR for name in names)
words = sorted({w for w in re.findall("[a-z]+", text.lower()) if 3 <= len(w) <= LONGEST})
LETTERS = 29  # a to z after PAD, GO and END


def padded(words, before=(), after=()):
    rows = [[*before, *(ord(c) - 94 for c in w), *after] for w in words]
    return np.array([row + [PAD] * (LONGEST + 1 - len(row)) for row in rows], np.int32)


source, lengths = padded(words), np.array([len(w) for w in words])
target_in = padded([w[::-1] for w in words], before=[GO])
target_out = padded([w[::-1] for w in words], after=[END])

x, x_length = tf.placeholder(tf.int32, [None, LONGEST + 1]), tf.placeholder(tf.int32, [None])
y_in, y_out = (tf.placeholder(tf.int32, [None, LONGEST + 1]) for _ in range(2))
batch = tf.size(x_length)
embedding = tf.get_variable("embedding", [LETTERS, 24], initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=1))
with tf.variable_scope("encoder", initializer=tf.glorot_uniform_initializer(seed=2)):
    encoder = tf.contrib.rnn.BasicLSTMCell(UNITS)
    memory, state = tf.nn.dynamic_rnn(encoder, tf.nn.embedding_lookup(embedding, x), x_length, dtype=tf.float32)
projection = tf.layers.Dense(LETTERS, use_bias=False, name="projection")


def decode(helper, beams=1):
    """Returns the outputs of the decoder with a helper; of a beam search without one."""
    tiled = (
        [seq2seq.tile_batch(t, beams) for t in (memory, x_length, state)] if beams > 1 else [memory, x_length, state]
    )
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE, initializer=tf.glorot_uniform_initializer(seed=3)):
        attention = seq2seq.LuongAttention(UNITS, tiled[0], memory_sequence_length=tiled[1])
        cell = seq2seq.AttentionWrapper(tf.contrib.rnn.BasicLSTMCell(UNITS), attention, attention_layer_size=UNITS)
        start = cell.zero_state(batch * beams, tf.float32).clone(cell_state=tiled[2])
        if helper is not None:
            decoder = seq2seq.BasicDecoder(cell, helper, start, output_layer=projection)
        else:
            decoder = seq2seq.BeamSearchDecoder(cell, embedding, tf.fill([batch], GO), END, start, beams, projection)
        return seq2seq.dynamic_decode(decoder, maximum_iterations=LONGEST + 1)[0]


training = decode(seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, y_in), tf.fill([batch], LONGEST + 1)))
greedy = decode(seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([batch], GO), END))
searched = decode(None, BEAMS)
mask = tf.to_float(tf.not_equal(y_out, PAD))
loss = seq2seq.sequence_loss(training.rnn_output, y_out, mask)
gradients, variables = zip(*tf.train.AdamOptimizer(0.01).compute_gradients(loss))
optimizer = tf.train.AdamOptimizer(0.01)
train = optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 5.0)[0], variables))


def spelled(ids):
    return ["".join(chr(i + 94) for i in row if i > END) for row in ids]


random = np.random.RandomState(0)
order = random.permutation(len(words))
learned, tested = order[50:], order[:50]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS + 1):
        rows = random.choice(learned, BATCH)
        fed = {x: source[rows], x_length: lengths[rows], y_in: target_in[rows], y_out: target_out[rows]}
        value, _ = sess.run([loss, train], fed)
        if step % 50 == 0:
            print("step %d: loss %.3f" % (step, value))
    fed = {x: source[tested], x_length: lengths[tested]}
    first, best = sess.run([greedy.sample_id, searched.predicted_ids[:, :, 0]], fed)

backwards = [words[i][::-1] for i in tested]
right = [sum(a == b for a, b in zip(spelled(ids), backwards)) for ids in (first, best)]
print("of 50 words that it never saw: %d right greedily, %d by beam search" % tuple(right))
assert min(right) >= 25
