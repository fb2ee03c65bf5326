"""Generative adversarial networks of convolutions (Radford et al. 2016): handwritten ones from noise."""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, STEPS, NOISE = 32, 150, 16

digits = load_digits()
images = (digits.images[digits.target == 1] / 8 - 1).astype(np.float32)[..., None]


def generator(z):
    with tf.variable_scope("Generator", initializer=tf.glorot_uniform_initializer(seed=1)):
        x = tf.layers.dense(z, 2 * 2 * 32)
        x = tf.reshape(x, [-1, 2, 2, 32])
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=True))
        x = tf.layers.conv2d_transpose(x, 16, 3, strides=2, padding="same")
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=True))
        x = tf.layers.conv2d_transpose(x, 1, 3, strides=2, padding="same")
        return tf.nn.tanh(x)


def discriminator(x, reuse=False):
    with tf.variable_scope("Discriminator", reuse=reuse, initializer=tf.glorot_uniform_initializer(seed=2)):
        x = tf.nn.leaky_relu(tf.layers.conv2d(x, 16, 3, strides=2, padding="same"))
        x = tf.nn.leaky_relu(tf.layers.conv2d(x, 32, 3, strides=2, padding="same"))
        return tf.layers.dense(tf.layers.flatten(x), 2)


noise_input = tf.placeholder(tf.float32, shape=[None, NOISE])
real_input = tf.placeholder(tf.float32, shape=[None, 8, 8, 1])
drawn = generator(noise_input)
disc_real = discriminator(real_input)
disc_fake = discriminator(drawn, reuse=True)
one = tf.ones([tf.shape(drawn)[0]], tf.int32)
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
disc_loss = tf.reduce_mean(
    tf.concat([cross_entropy(labels=one, logits=disc_real), cross_entropy(labels=0 * one, logits=disc_fake)], axis=0)
)
gen_loss = tf.reduce_mean(cross_entropy(labels=one, logits=disc_fake))
updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope="Generator")
with tf.control_dependencies(updates):
    train_gen = tf.train.AdamOptimizer(2e-3, beta1=0.5).minimize(
        gen_loss, var_list=tf.trainable_variables(scope="Generator")
    )
train_disc = tf.train.AdamOptimizer(2e-3, beta1=0.5).minimize(
    disc_loss, var_list=tf.trainable_variables(scope="Discriminator")
)

random = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    fixed = random.uniform(-1, 1, [64, NOISE])
    before = sess.run(drawn, {noise_input: fixed})
    for step in range(STEPS):
        z = random.uniform(-1.0, 1.0, size=[BATCH, NOISE])
        fed = {real_input: images[random.choice(len(images), BATCH)], noise_input: z}
        dl, _ = sess.run([disc_loss, train_disc], fed)
        gl, _ = sess.run([gen_loss, train_gen], fed)
        if step in (0, 10, 20):
            print("step %d: discriminator loss %.3f, generator loss %.3f" % (step, dl, gl))
    after = sess.run(drawn, {noise_input: fixed})


def distance(samples):
    """Returns the distance of the mean drawing from the mean real digit."""
    return np.abs(samples.mean(0) - images.mean(0)).mean()


print("drawings are nearer to real ones than at the start: %s" % (distance(after) < distance(before) / 2))
print("they differ from each other: %s" % (after.std(axis=0).mean() > 0.05))
assert distance(after) < distance(before) / 2
assert after.std(axis=0).mean() > 0.05
