"""A small encoder of transformers, trained as BERT: some words are hidden, and the network says which they were."""

import re

import numpy as np
from sklearn import datasets

import timberframe as tf

LAYERS, HEADS, HIDDEN, LENGTH, BATCH, STEPS, LEAST = 2, 2, 32, 16, 32, 200, 8
PAD, UNKNOWN, MASK = 0, 1, 2

names = ("digits", "iris", "wine", "breast_cancer", "diabetes")
text = " ".join(getattr(datasets, "load_" + name)().DESCR for name in names)
words = re.findall(r"[a-z]+|\d+|[:.,|=]", text.lower())
vocabulary = {w: 3 + i for i, w in enumerate(sorted({w for w in words if words.count(w) >= LEAST}))}
ids = np.array([vocabulary.get(w, UNKNOWN) for w in words])
SIZE = len(vocabulary) + 3


def initializer(seed):
    return tf.truncated_normal_initializer(stddev=0.1, seed=seed)


def layer_norm(x, name):
    with tf.variable_scope(name):
        mean, variance = tf.nn.moments(x, axes=[-1], keep_dims=True)
        gamma = tf.get_variable("gamma", [HIDDEN], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [HIDDEN], initializer=tf.zeros_initializer())
        return (x - mean) * tf.rsqrt(variance + 1e-12) * gamma + beta


def gelu(x):
    return x * 0.5 * (1.0 + tf.erf(x / np.sqrt(2.0)))


def attention(x):
    def heads(name, seed):
        made = tf.layers.dense(x, HIDDEN, name=name, kernel_initializer=initializer(seed))
        return tf.transpose(tf.reshape(made, [-1, LENGTH, HEADS, HIDDEN // HEADS]), [0, 2, 1, 3])

    query, key, value = heads("query", 1), heads("key", 2), heads("value", 3)
    scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(float(HIDDEN // HEADS))
    context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return tf.reshape(context, [-1, LENGTH, HIDDEN])


def encoder(input_ids):
    with tf.variable_scope("bert"):
        with tf.variable_scope("embeddings"):
            table = tf.get_variable("word_embeddings", [SIZE, HIDDEN], initializer=initializer(4))
            positions = tf.get_variable("position_embeddings", [LENGTH, HIDDEN], initializer=initializer(5))
            x = layer_norm(tf.nn.embedding_lookup(table, input_ids) + positions, "LayerNorm")
        for i in range(LAYERS):
            with tf.variable_scope("layer_%d" % i):
                seen = tf.layers.dense(attention(x), HIDDEN, name="output", kernel_initializer=initializer(6))
                x = layer_norm(x + seen, "attention_norm")
                inner = tf.layers.dense(x, 4 * HIDDEN, gelu, name="inner", kernel_initializer=initializer(7))
                x = layer_norm(x + tf.layers.dense(inner, HIDDEN, kernel_initializer=initializer(8)), "output_norm")
    return x, table


input_ids = tf.placeholder(tf.int32, [None, LENGTH])
label_ids = tf.placeholder(tf.int32, [None, LENGTH])
label_weights = tf.placeholder(tf.float32, [None, LENGTH])
outputs, table = encoder(input_ids)
logits = tf.matmul(tf.reshape(outputs, [-1, HIDDEN]), table, transpose_b=True)
each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(label_ids, [-1]), logits=logits)
flat = tf.reshape(label_weights, [-1])
loss = tf.reduce_sum(flat * each) / (tf.reduce_sum(flat) + 1e-5)
step = tf.train.get_or_create_global_step()
rate = tf.train.polynomial_decay(4e-3, step, STEPS, end_learning_rate=1e-4)
train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)

random, losses = np.random.RandomState(0), []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(STEPS):
        starts = random.randint(0, len(ids) - LENGTH, size=BATCH)
        rows = np.stack([ids[s : s + LENGTH] for s in starts])
        hidden = (random.uniform(size=rows.shape) < 0.15) & (rows > UNKNOWN)
        fed = {input_ids: np.where(hidden, MASK, rows), label_ids: rows, label_weights: hidden}
        losses.append(sess.run([loss, train], fed)[0])
        if i in (0, 9, 49):
            print("step %d: loss %.3f" % (i + 1, losses[-1]))

shares = np.bincount(ids[ids > UNKNOWN]) / (ids > UNKNOWN).sum()
entropy = -sum(p * np.log(p) for p in shares if p)
print("mean of the last 30 steps %.3f; without context it would be %.3f at best" % (np.mean(losses[-30:]), entropy))
assert np.mean(losses[-30:]) < entropy - 0.5
