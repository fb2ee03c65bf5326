"""A variational autoencoder: handwritten digits drawn from normal numbers (Kingma and Welling 2014)."""

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, EPOCHS, LATENT = 64, 20, 4

images = (load_digits().data / 16).astype(np.float32)
glorot = [tf.glorot_uniform_initializer(seed=i) for i in range(6)]

x = tf.placeholder(tf.float32, [None, 64])
noise = tf.placeholder(tf.float32, [None, LATENT])


def dense(inputs, units, name, activation=None, number=0):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [inputs.shape.as_list()[1], units], initializer=glorot[number])
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
    outputs = tf.nn.bias_add(tf.matmul(inputs, w), b)
    return outputs if activation is None else activation(outputs)


def decode(z):
    return dense(dense(z, 64, "decoder_hidden", tf.nn.relu, 3), 64, "decoder", number=4)


hidden = dense(x, 64, "encoder_hidden", tf.nn.relu, 0)
mean, log_variance = dense(hidden, LATENT, "mean", number=1), dense(hidden, LATENT, "log_variance", number=2)
z = mean + tf.exp(0.5 * log_variance) * noise
logits = decode(z)
reconstruction = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), axis=1)
divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), axis=1)
loss = tf.reduce_mean(reconstruction + divergence)
train = tf.train.AdamOptimizer(3e-3).minimize(loss)
drawn = tf.sigmoid(decode(noise))

random = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    losses = []
    for epoch in range(EPOCHS):
        total = []
        for i in range(0, 1500 - BATCH + 1, BATCH):
            fed = {x: images[i : i + BATCH], noise: random.normal(size=[BATCH, LATENT])}
            total.append(sess.run([loss, train], fed)[0])
        losses.append(np.mean(total))
        if epoch in (0, 4, EPOCHS - 1):
            print("epoch %d: loss %.3f" % (epoch + 1, losses[-1]))
    bound = sess.run(loss, {x: images[1500:], noise: np.zeros([297, LATENT])})
    samples = sess.run(drawn, {noise: random.normal(size=[4, LATENT])})

print("loss of the test digits %.3f" % bound)
for rows in samples.reshape(4, 8, 8).transpose(1, 0, 2):
    print(" ".join("".join(" .:*#"[int(v * 4.99)] for v in row) for row in rows).rstrip())
assert losses[-1] < losses[0] - 8
assert bound < 30
