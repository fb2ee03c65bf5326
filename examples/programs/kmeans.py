"""k-means: three clusters of 150 iris flowers by four lengths, which are nearly the three species."""

import numpy as np
from sklearn.datasets import load_iris

import timberframe as tf

CLUSTERS = 3

lengths, species = load_iris(return_X_y=True)
points = tf.constant(lengths.astype(np.float32))
centres = tf.Variable(tf.gather(points, [0, 50, 100]), name="centres")

distances = tf.reduce_sum(tf.square(tf.expand_dims(points, 1) - tf.expand_dims(centres, 0)), axis=2)
assignment = tf.cast(tf.argmin(distances, axis=1), tf.int32)
inertia = tf.reduce_sum(tf.reduce_min(distances, axis=1))
sums = tf.unsorted_segment_sum(points, assignment, CLUSTERS)
counts = tf.unsorted_segment_sum(tf.ones([points.shape[0], 1]), assignment, CLUSTERS)
moved = sums / tf.maximum(counts, 1)
update = tf.assign(centres, moved)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    before = None
    for step in range(100):
        found, value = sess.run([assignment, inertia])
        if before is not None and (found == before).all():
            break
        before = found
        sess.run(update)
        if step < 3:
            print("step %d: inertia %.3f" % (step, value))
    print("nothing changes after step %d: inertia %.3f" % (step, value))

purity = sum(np.bincount(species[found == k]).max() for k in range(CLUSTERS)) / len(species)
print("purity %.3f" % purity)
assert abs(value - 78.851) < 0.01  # the least inertia of three clusters
assert purity > 0.85
