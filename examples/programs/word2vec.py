"""Word vectors by skip-grams and noise-contrastive estimation, from the descriptions of five data sets."""

import collections
import re

import numpy as np
from sklearn import datasets

import timberframe as tf

BATCH, SIZE, WINDOW, SAMPLED, STEPS, LEAST = 128, 24, 2, 32, 600, 3

names = ("digits", "iris", "wine", "breast_cancer", "diabetes")
text = " ".join(getattr(datasets, "load_" + name)().DESCR for name in names)
words = re.findall("[a-z]+", text.lower())
counts = [(w, n) for w, n in collections.Counter(words).most_common() if n >= LEAST]
numbers = {w: i + 1 for i, (w, n) in enumerate(counts)}  # 0: a rare word
data = np.array([numbers.get(w, 0) for w in words])
vocabulary = len(numbers) + 1

shifts = [s for s in range(-WINDOW, WINDOW + 1) if s != 0]
centres = np.concatenate([data[WINDOW:-WINDOW]] * len(shifts))
contexts = np.concatenate([data[WINDOW + s : len(data) - WINDOW + s] for s in shifts])
known = (centres > 0) & (contexts > 0)
centres, contexts = centres[known], contexts[known]

train_inputs = tf.placeholder(tf.int32, shape=[None])
train_labels = tf.placeholder(tf.int32, shape=[None, 1])
embeddings = tf.Variable(tf.random_uniform([vocabulary, SIZE], -1.0, 1.0, seed=1))
embed = tf.nn.embedding_lookup(embeddings, train_inputs)
nce_weights = tf.Variable(tf.truncated_normal([vocabulary, SIZE], stddev=1.0 / np.sqrt(SIZE), seed=2))
nce_biases = tf.Variable(tf.zeros([vocabulary]))
tf.set_random_seed(3)
sampled = tf.nn.log_uniform_candidate_sampler(
    true_classes=tf.cast(train_labels, tf.int64), num_true=1, num_sampled=SAMPLED, unique=True, range_max=vocabulary,
    seed=4,
)  # fmt: skip
loss = tf.reduce_mean(
    tf.nn.nce_loss(
        weights=nce_weights,
        biases=nce_biases,
        labels=train_labels,
        inputs=embed,
        num_sampled=SAMPLED,
        num_classes=vocabulary,
        sampled_values=sampled,
    )
)
optimizer = tf.train.AdagradOptimizer(0.5).minimize(loss)
normalized = embeddings / tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
query = tf.placeholder(tf.int32, [])
similarity = tf.matmul(tf.expand_dims(tf.gather(normalized, query), 0), normalized, transpose_b=True)[0]

random = np.random.RandomState(0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    losses = []
    for step in range(STEPS):
        rows = random.choice(len(centres), BATCH)
        fed = {train_inputs: centres[rows], train_labels: contexts[rows][:, None]}
        _, value = session.run([optimizer, loss], feed_dict=fed)
        losses.append(value)
        if step % 200 == 199:
            print("steps to %d: mean loss %.3f" % (step + 1, np.mean(losses[-200:])))
    spelled, nearest = [w for w, _ in counts], {}
    for word in ("breast", "data"):
        order = (-session.run(similarity, {query: numbers[word]})).argsort()
        nearest[word] = [spelled[k - 1] for k in order[1:9] if k > 0]
        print("near %s: %s" % (word, ", ".join(nearest[word][:4])))

assert np.mean(losses[-200:]) < np.mean(losses[:200]) / 2
assert "cancer" in nearest["breast"]
