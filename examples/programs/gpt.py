"""A small GPT: it learns a text letter by letter, and goes on from a beginning."""

import numpy as np
from sklearn.datasets import load_breast_cancer

import timberframe as tf

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, STEPS = 2, 2, 48, 32, 16, 150

text = load_breast_cancer().DESCR[200:1700].lower()
letters = sorted(set(text))
data = np.array([letters.index(c) for c in text])


def norm(x, scope):
    with tf.variable_scope(scope):
        g = tf.get_variable("g", [WIDTH], initializer=tf.constant_initializer(1))
        b = tf.get_variable("b", [WIDTH], initializer=tf.constant_initializer(0))
        u = tf.reduce_mean(x, axis=-1, keepdims=True)
        s = tf.reduce_mean(tf.square(x - u), axis=-1, keepdims=True)
        return (x - u) * tf.rsqrt(s + 1e-5) * g + b


def conv1d(x, scope, nf, seed):
    with tf.variable_scope(scope):
        nx = x.shape.as_list()[-1]
        w = tf.get_variable("w", [1, nx, nf], initializer=tf.random_normal_initializer(stddev=0.1, seed=seed))
        b = tf.get_variable("b", [nf], initializer=tf.constant_initializer(0))
        start = tf.shape(x)[:-1]
        return tf.reshape(tf.matmul(tf.reshape(x, [-1, nx]), tf.reshape(w, [-1, nf])) + b, tf.concat([start, [nf]], 0))


def gelu(x):
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def attn(x, scope):
    with tf.variable_scope(scope):
        c = tf.reshape(conv1d(x, "c_attn", 3 * WIDTH, 1), [-1, CONTEXT, 3, HEADS, WIDTH // HEADS])
        q, k, v = tf.unstack(tf.transpose(c, [2, 0, 3, 1, 4]))
        w = tf.matmul(q, k, transpose_b=True) * tf.rsqrt(float(WIDTH // HEADS))
        mask = tf.matrix_band_part(tf.ones([CONTEXT, CONTEXT]), -1, 0)  # nothing sees what comes later
        w = tf.nn.softmax(w * mask - 1e10 * (1 - mask))
        a = tf.reshape(tf.transpose(tf.matmul(w, v), [0, 2, 1, 3]), [-1, CONTEXT, WIDTH])
        return conv1d(a, "c_proj", WIDTH, 2)


def block(x, scope):
    with tf.variable_scope(scope):
        x = x + attn(norm(x, "ln_1"), "attn")
        with tf.variable_scope("mlp"):
            h = gelu(conv1d(norm(x, "ln_2"), "c_fc", 4 * WIDTH, 3))
            return x + conv1d(h, "c_proj", WIDTH, 4)


tokens = tf.placeholder(tf.int32, [None, CONTEXT + 1])
with tf.variable_scope("model"):
    wpe = tf.get_variable("wpe", [CONTEXT, WIDTH], initializer=tf.random_normal_initializer(stddev=0.02, seed=5))
    wte = tf.get_variable("wte", [len(letters), WIDTH], initializer=tf.random_normal_initializer(stddev=0.1, seed=6))
    h = tf.gather(wte, tokens[:, :-1]) + wpe
    for layer in range(LAYERS):
        h = block(h, "h%d" % layer)
    logits = tf.einsum("btw,vw->btv", norm(h, "ln_f"), wte)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tokens[:, 1:], logits=logits))
train = tf.train.AdamOptimizer(5e-3).minimize(loss)

random = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS + 1):
        starts = random.randint(0, len(data) - CONTEXT - 1, size=BATCH)
        value, _ = sess.run([loss, train], {tokens: [data[s : s + CONTEXT + 1] for s in starts]})
        if step in (0, 10, 50, STEPS):
            print("step %d: loss %.3f" % (step, value))
    written = list(data[300 : 300 + CONTEXT])
    for _ in range(30):
        fed = [written[-CONTEXT:] + [0]]
        written.append(int(sess.run(logits, {tokens: fed})[0, -1].argmax()))

assert value < 1.5
assert len(written) == CONTEXT + 30
print("it goes on from %r" % "".join(letters[i] for i in written[:CONTEXT]))
