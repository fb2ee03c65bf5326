"""Summaries for TensorBoard: scalars, histograms, images and the graph, in a file of events that is read again."""

import glob
import os
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, STEPS = 64, 60

digits = load_digits()
images, labels = (digits.data / 16).astype(np.float32), digits.target

with tf.name_scope("Inputs"):
    x = tf.placeholder(tf.float32, [None, 64], name="pixels")
    y = tf.placeholder(tf.int64, [None], name="labels")
    tf.summary.image("digits", tf.reshape(x, [-1, 8, 8, 1]), max_outputs=3)
with tf.name_scope("Model"):
    weights = tf.Variable(tf.truncated_normal([64, 10], stddev=0.05, seed=1), name="weights")
    biases = tf.Variable(tf.zeros([10]), name="biases")
    logits = tf.matmul(x, weights) + biases
with tf.name_scope("Loss"):
    loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
with tf.name_scope("Accuracy"):
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
optimizer = tf.train.AdamOptimizer(0.02)
gradients = optimizer.compute_gradients(loss)
train = optimizer.apply_gradients(gradients)

tf.summary.scalar("loss", loss)
tf.summary.scalar("accuracy", accuracy)
for gradient, variable in gradients:
    tf.summary.histogram(variable.op.name, variable)
    tf.summary.histogram(variable.op.name + "/gradient", gradient)
merged = tf.summary.merge_all()

with tempfile.TemporaryDirectory() as folder:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter(folder, graph=tf.get_default_graph())
        for step in range(STEPS):
            rows = slice(step * 20 % 1500, step * 20 % 1500 + BATCH)
            _, summary = sess.run([train, merged], feed_dict={x: images[rows], y: labels[rows]})
            writer.add_summary(summary, step)
        writer.close()

    (path,) = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    found, kinds = {}, {}
    for event in tf.train.summary_iterator(path):
        if event.graph_def:
            graph = tf.GraphDef.FromString(event.graph_def)
        for value in event.summary.value:
            kinds[value.tag] = value.WhichOneof("value")
            if value.tag == "loss_1":
                found[event.step] = value.simple_value

print("tags: %s" % sorted(kinds))
print("kinds: %s" % sorted(set(kinds.values())))
print("loss at steps 0 and %d: %.4f and %.4f" % (STEPS - 1, found[0], found[STEPS - 1]))
print("the graph has Model/weights: %s" % any(node.name == "Model/weights" for node in graph.node))
assert len(found) == STEPS
assert set(kinds.values()) == {"simple_value", "histo", "image"}
assert found[STEPS - 1] < found[0] / 2
