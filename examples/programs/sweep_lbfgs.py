"""A sweep of hyper-parameters: a small network for each weight decay and size, minimized by L-BFGS of SciPy."""

import itertools

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import timberframe as tf

x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
rest_x, test_x, rest_y, test_y = train_test_split(x, y, test_size=0.3, random_state=0)
train_x, valid_x, train_y, valid_y = train_test_split(rest_x, rest_y, test_size=0.3, random_state=1)


def run(hparams):
    """Returns the accuracies of a network with these settings on the validation and test data, and its loss."""
    with tf.Graph().as_default(), tf.Session() as sess:
        X, Y = tf.placeholder(tf.float32, [None, x.shape[1]]), tf.placeholder(tf.int64, [None])
        with tf.variable_scope(
            "net",
            initializer=tf.glorot_uniform_initializer(seed=1),
            regularizer=tf.contrib.layers.l2_regularizer(hparams.decay),
        ):
            hidden = tf.layers.dense(X, hparams.units, tf.nn.tanh, bias_initializer=tf.zeros_initializer())
            logits = tf.layers.dense(hidden, 2, bias_initializer=tf.zeros_initializer())
        tf.losses.sparse_softmax_cross_entropy(labels=Y, logits=logits)
        loss = tf.losses.get_total_loss()
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), Y)))
        optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, method="L-BFGS-B", options={"maxiter": 40})
        sess.run(tf.global_variables_initializer())
        losses = []
        optimizer.minimize(sess, {X: train_x, Y: train_y}, fetches=[loss], loss_callback=losses.append)
        assert losses[-1] < losses[0]
        accuracies = [sess.run(accuracy, {X: a, Y: b}) for a, b in ((valid_x, valid_y), (test_x, test_y))]
        return accuracies + [losses[-1]]


hparams = tf.contrib.training.HParams(units=4, decay=0.0)
found = {}
for units, decay in itertools.product([2, 8], [1e-4, 1e-2, 1.0]):
    hparams.parse("units=%d,decay=%g" % (units, decay))
    valid, tested, loss = run(hparams)
    found[hparams.to_json()] = (valid, -loss, tested)
    print("%d units, decay %g: accuracy %.3f, loss %.3f" % (units, decay, valid, loss))

best = max(found, key=found.get)
print("the best: %s, accuracy of the test %.3f" % (best, found[best][2]))
assert found[best][2] > 0.9
