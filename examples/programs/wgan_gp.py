"""A Wasserstein GAN with a penalty on the critic's gradients (Gulrajani et al. 2017): drawings of a zero."""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, NOISE, CRITIC_STEPS, STEPS, LAMBDA = 64, 8, 5, 120, 10.0

images, labels = load_digits(return_X_y=True)
zeros = (images[labels == 0] / 16).astype(np.float32)


def layer(name, x, size, seed, activation=None):
    return tf.layers.dense(x, size, activation, kernel_initializer=tf.glorot_uniform_initializer(seed=seed), name=name)


def generator(noise):
    with tf.variable_scope("Generator", reuse=tf.AUTO_REUSE):
        return layer("out", layer("hidden", noise, 64, 1, tf.nn.relu), 64, 2, tf.nn.sigmoid)


def critic(x):
    with tf.variable_scope("Discriminator", reuse=tf.AUTO_REUSE):
        hidden = layer("second", layer("first", x, 64, 3, tf.nn.leaky_relu), 64, 4, tf.nn.leaky_relu)
        return tf.reshape(layer("out", hidden, 1, 5), [-1])


real, noise = tf.placeholder(tf.float32, [BATCH, 64]), tf.placeholder(tf.float32, [BATCH, NOISE])
fake = generator(noise)
critic_real, critic_fake = critic(real), critic(fake)
distance = tf.reduce_mean(critic_real) - tf.reduce_mean(critic_fake)

alpha = tf.random_uniform([BATCH, 1], 0.0, 1.0, seed=6)
between = real + alpha * (fake - real)
slopes = tf.gradients(critic(between), [between])[0]
penalty = tf.reduce_mean((tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=[1])) - 1.0) ** 2)

params = {
    name: [v for v in tf.trainable_variables() if v.name.startswith(name)] for name in ("Generator", "Discriminator")
}
train_generator = tf.train.AdamOptimizer(2e-3, beta1=0.5, beta2=0.9).minimize(
    -tf.reduce_mean(critic_fake), var_list=params["Generator"]
)
train_critic = tf.train.AdamOptimizer(2e-3, beta1=0.5, beta2=0.9).minimize(
    -distance + LAMBDA * penalty, var_list=params["Discriminator"]
)

random = np.random.RandomState(0)


def feed():
    return {real: zeros[random.randint(0, len(zeros), BATCH)], noise: random.normal(size=(BATCH, NOISE))}


def away(drawings):
    """Returns the mean distance of drawings from the real zero that is nearest to each."""
    return np.sqrt(((drawings[:, None] - zeros[None]) ** 2).sum(2)).min(1).mean()


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    start = away(sess.run(fake, feed()))
    for step in range(STEPS + 1):
        for _ in range(CRITIC_STEPS):
            found, norm, _ = sess.run([distance, penalty, train_critic], feed())
        sess.run(train_generator, feed())
        if step % 40 == 0:
            print("step %d: distance %.1f, penalty %.3f" % (step, found, norm))
    drawings = sess.run(fake, feed())

spread = drawings.std(axis=0).mean() / zeros.std(axis=0).mean()
print("drawings are nearer to real zeros than at the start: %s" % (away(drawings) < 0.6 * start))
print("they differ from each other: %s" % (spread > 0.4))
assert away(drawings) < 0.6 * start
assert spread > 0.4
