"""Input by queues: threads read lines of text files, parse and shuffle them, and training takes batches of them."""

import os
import tempfile

import numpy as np
from sklearn.datasets import load_iris

import timberframe as tf

BATCH, EPOCHS = 32, 60

lengths, species = load_iris(return_X_y=True)
folder = tempfile.TemporaryDirectory()
paths = []
for k in range(3):  # a file of each species
    paths.append(os.path.join(folder.name, "part%d.csv" % k))
    rows = np.column_stack([lengths[species == k], species[species == k]])
    np.savetxt(paths[-1], rows, fmt=["%.1f"] * 4 + ["%d"], delimiter=",")

filename_queue = tf.train.string_input_producer(paths, num_epochs=EPOCHS, shuffle=True, seed=1)
key, line = tf.TextLineReader().read(filename_queue)
columns = tf.decode_csv(line, record_defaults=[[0.0]] * 4 + [[0]])
features, label = tf.stack(columns[:4]), columns[4]
feature_batch, label_batch = tf.train.shuffle_batch(
    [features, label], batch_size=BATCH, capacity=400, min_after_dequeue=200, seed=2
)

weights = tf.get_variable("weights", [4, 3], initializer=tf.zeros_initializer())
biases = tf.get_variable("biases", [3], initializer=tf.zeros_initializer())


def logits_of(x):
    return tf.matmul((x - lengths.mean(0)) / lengths.std(0), weights) + biases


loss = tf.losses.sparse_softmax_cross_entropy(label_batch, logits_of(feature_batch))
train = tf.train.AdamOptimizer(0.05).minimize(loss)
everything = tf.constant(lengths.astype(np.float32))
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits_of(everything), 1), species)))

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    steps = 0
    try:
        while not coord.should_stop():
            sess.run(train)
            steps += 1
    except tf.errors.OutOfRangeError:
        print("%d epochs are over after %d steps" % (EPOCHS, steps))
    finally:
        coord.request_stop()
    coord.join(threads)
    reached = sess.run(accuracy)

folder.cleanup()
print("accuracy %s 0.95" % (">" if reached > 0.95 else "<="))
assert steps == EPOCHS * 150 // BATCH
assert reached > 0.95
