"""Saving and restoring: training that goes on from a checkpoint, in another session and from the graph's file alone."""

import os
import tempfile

import numpy as np
from sklearn.datasets import load_wine

import timberframe as tf

measured, kinds = load_wine(return_X_y=True)
measured = ((measured - measured.mean(0)) / measured.std(0)).astype(np.float32)

x = tf.placeholder(tf.float32, [None, 13], name="x")
y = tf.placeholder(tf.int64, [None], name="y")
hidden_w = tf.get_variable("hidden/w", [13, 16], initializer=tf.glorot_normal_initializer(seed=1))
hidden_b = tf.get_variable("hidden/b", [16], initializer=tf.zeros_initializer())
out_w = tf.get_variable("out/w", [16, 3], initializer=tf.glorot_normal_initializer(seed=2))
logits = tf.matmul(tf.nn.relu(tf.matmul(x, hidden_w) + hidden_b), out_w, name="logits")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step, name="train")
saver = tf.train.Saver(max_to_keep=2)
fed = {x: measured, y: kinds}

with tempfile.TemporaryDirectory() as folder:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(60):
            sess.run(train, fed)
            if sess.run(step) % 20 == 0:
                path = saver.save(sess, os.path.join(folder, "model.ckpt"), global_step=step)
                print("step %d: loss %.4f, saved %s" % (sess.run(step), sess.run(loss, fed), os.path.basename(path)))
        last = sess.run(logits, fed)

    print("kept: %s" % [os.path.basename(p) for p in saver.last_checkpoints])
    with tf.Session() as sess:
        saver.restore(sess, os.path.join(folder, "model.ckpt-40"))
        print("restored step %d: loss %.4f" % (sess.run(step), sess.run(loss, fed)))
        for _ in range(20):
            sess.run(train, fed)
        again = sess.run(logits, fed)
    assert (again == last).all()  # bit for bit

    shapes = tf.train.list_variables(tf.train.latest_checkpoint(folder))
    print("variables: %s" % sorted(name for name, shape in shapes if "Adam" not in name))

    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(path + ".meta").restore(sess, path)
        restored = sess.run("logits:0", {"x:0": measured})
    assert np.allclose(restored, last, atol=1e-6)

accuracy = (restored.argmax(1) == kinds).mean()
print("accuracy %.3f" % accuracy)
assert accuracy > 0.97
