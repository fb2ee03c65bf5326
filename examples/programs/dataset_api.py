"""Input by tf.data: shuffled, repeated, mapped and batched; one iterator for training and for testing."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

BATCH, EPOCHS = 64, 10

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    images.astype(np.float32), labels.astype(np.int64), test_size=0.3, random_state=0
)


def scaled(image, label):
    return image / 16.0, label


train_data = tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(2000, seed=1).map(scaled)
train_data = train_data.batch(BATCH, drop_remainder=True).prefetch(1)
test_data = tf.data.Dataset.from_tensor_slices((test_x, test_y)).map(scaled, num_parallel_calls=2).batch(100)

iterator = tf.data.Iterator.from_structure(test_data.output_types, test_data.output_shapes)
x, y = iterator.get_next()
x = tf.reshape(x, [-1, 64])
start_training, start_testing = iterator.make_initializer(train_data), iterator.make_initializer(test_data)

w1 = tf.get_variable("w1", [64, 64], initializer=tf.glorot_uniform_initializer(seed=2))
b1 = tf.get_variable("b1", [64], initializer=tf.zeros_initializer())
w2 = tf.get_variable("w2", [64, 10], initializer=tf.glorot_uniform_initializer(seed=3))
logits = tf.matmul(tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1)), w2)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
right = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.int32))
train = tf.train.AdamOptimizer(5e-3).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(EPOCHS):
        sess.run(start_training)
        losses = []
        while True:
            try:
                losses.append(sess.run([loss, train])[0])
            except tf.errors.OutOfRangeError:
                break
        if epoch in (0, 4, EPOCHS - 1):
            print("epoch %d: %d batches, loss %.4f" % (epoch + 1, len(losses), np.mean(losses)))
    sess.run(start_testing)
    count = 0
    try:
        while True:
            count += sess.run(right)
    except tf.errors.OutOfRangeError:
        pass

    # Sequences of different lengths, padded to the longest of their batch.
    lengths = tf.data.Dataset.range(1, 8).map(lambda n: tf.fill([n], n)).padded_batch(3, [None])
    rows = lengths.make_one_shot_iterator().get_next()
    print(sess.run(rows).tolist())

accuracy = count / len(test_y)
print("accuracy %.3f" % accuracy)
assert accuracy > 0.95
