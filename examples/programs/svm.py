"""A linear support vector machine: malignant or benign, from 30 measurements of 569 tumours."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import timberframe as tf

STEPS, RATE, SOFTNESS = 400, 0.2, 0.001

measured, benign = load_breast_cancer(return_X_y=True)
measured = ((measured - measured.mean(0)) / measured.std(0)).astype(np.float32)
train_x, test_x, train_y, test_y = train_test_split(
    measured, benign.astype(np.float32).reshape(-1, 1), test_size=0.3, random_state=0
)

x = tf.placeholder(tf.float32, [None, 30])
y = tf.placeholder(tf.float32, [None, 1])
weights = tf.get_variable("weights", [30, 1], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=1))
bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
score = tf.matmul(x, weights) - bias
loss = tf.losses.hinge_loss(labels=y, logits=score) + SOFTNESS * tf.nn.l2_loss(weights)
step_count = tf.train.create_global_step()
rate = tf.train.inverse_time_decay(RATE, step_count, decay_steps=100, decay_rate=1.0)
train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step_count)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.cast(score > 0, tf.float32), y), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS + 1):
        _, value = sess.run([train, loss], {x: train_x, y: train_y})
        if step % 200 == 0:
            print("step %d: loss %.4f" % (step, value))
    reached = sess.run(accuracy, {x: test_x, y: test_y})

print("accuracy %.3f" % reached)
assert reached > 0.95
