"""Generative adversarial networks: one draws digits from noise, the other tells them from real ones."""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, STEPS, NOISE, RATE = 64, 400, 16, 1e-3

images = (load_digits().data / 16).astype(np.float32)
images = images[load_digits().target == 0]  # zeros alone, so that seconds are enough


def glorot(shape, seed):
    return tf.Variable(tf.random_normal(shape, stddev=1.0 / np.sqrt(shape[0] / 2.0), seed=seed))


with tf.variable_scope("generator"):
    g_w1, g_b1 = glorot([NOISE, 48], 1), tf.Variable(tf.zeros([48]))
    g_w2, g_b2 = glorot([48, 64], 2), tf.Variable(tf.zeros([64]))
with tf.variable_scope("discriminator"):
    d_w1, d_b1 = glorot([64, 48], 3), tf.Variable(tf.zeros([48]))
    d_w2, d_b2 = glorot([48, 1], 4), tf.Variable(tf.zeros([1]))


def generator(z):
    hidden = tf.nn.relu(tf.matmul(z, g_w1) + g_b1)
    return tf.nn.sigmoid(tf.matmul(hidden, g_w2) + g_b2)


def discriminator(x):
    hidden = tf.nn.leaky_relu(tf.matmul(x, d_w1) + d_b1)
    return tf.matmul(hidden, d_w2) + d_b2


gen_input = tf.placeholder(tf.float32, shape=[None, NOISE], name="input_noise")
disc_input = tf.placeholder(tf.float32, shape=[None, 64], name="disc_input")
gen_sample = generator(gen_input)
real, fake = discriminator(disc_input), discriminator(gen_sample)


def cross_entropy(logits, wanted):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=tf.ones_like(logits) * wanted))


gen_loss = cross_entropy(fake, 1.0)
disc_loss = cross_entropy(real, 0.9) + cross_entropy(fake, 0.0)
gen_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
disc_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="discriminator")
train_gen = tf.train.AdamOptimizer(RATE, beta1=0.5).minimize(gen_loss, var_list=gen_vars)
train_disc = tf.train.AdamOptimizer(RATE, beta1=0.5).minimize(disc_loss, var_list=disc_vars)

random = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    start = sess.run(gen_sample, {gen_input: random.uniform(-1, 1, [100, NOISE])})
    for step in range(STEPS + 1):
        batch = images[random.choice(len(images), BATCH)]
        z = random.uniform(-1.0, 1.0, size=[BATCH, NOISE])
        fed = {disc_input: batch, gen_input: z}
        _, _, gl, dl = sess.run([train_gen, train_disc, gen_loss, disc_loss], feed_dict=fed)
        if step in (0, 50, 100):
            print("step %d: generator loss %.3f, discriminator loss %.3f" % (step, gl, dl))
    drawn = sess.run(gen_sample, {gen_input: random.uniform(-1, 1, [100, NOISE])})


def distance(samples):
    """Returns the mean distance of samples to the nearest real digit."""
    return np.sqrt(((samples[:, None] - images[None]) ** 2).sum(2)).min(1).mean()


apart = np.sqrt(((images[:, None] - images[None]) ** 2).sum(2))
print("a zero is nearer to the next zero than 3: %s" % ((apart + 9 * np.eye(len(images))).min(1).mean() < 3))
print("drawings are nearer to real zeros than at the start: %s" % (distance(drawn) < distance(start) / 1.5))
assert distance(drawn) < distance(start) / 1.5
