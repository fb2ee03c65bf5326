"""Images in TFRecord files: written as PNG in tf.train.Examples, read in parallel, decoded, augmented and learned."""

import os
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import timberframe as tf

BATCH, EPOCHS, SHARDS = 64, 6, 4

images, labels = load_digits(return_X_y=True)
images = (images * 15).astype(np.uint8).reshape(-1, 8, 8, 1)


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def write(folder, name, rows):
    """Writes files of examples, each with some of the rows."""
    pixels = tf.placeholder(tf.uint8, [8, 8, 1])
    encoded = tf.image.encode_png(pixels)
    with tf.Session() as sess:
        for shard in range(SHARDS):
            path = os.path.join(folder, "%s-%05d-of-%05d.tfrecords" % (name, shard, SHARDS))
            with tf.python_io.TFRecordWriter(path) as writer:
                for row in rows[shard::SHARDS]:
                    png = sess.run(encoded, {pixels: images[row]})
                    feature = {"image/encoded": _bytes_feature(png), "image/class/label": _int64_feature(labels[row])}
                    writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record, training):
    features = {
        "image/encoded": tf.FixedLenFeature([], tf.string),
        "image/class/label": tf.FixedLenFeature([], tf.int64),
    }
    parsed = tf.parse_single_example(record, features)
    image = tf.image.decode_png(parsed["image/encoded"], channels=1)
    image.set_shape([8, 8, 1])
    image = tf.image.convert_image_dtype(image, tf.float32)
    if training:  # moved by up to one pixel
        image = tf.random_crop(tf.pad(image, [[1, 1], [1, 1], [0, 0]]), [8, 8, 1])
        image = tf.image.random_brightness(image, 0.1)
    return image, parsed["image/class/label"]


def dataset(pattern, training):
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=SHARDS, num_parallel_calls=2)
    if training:
        records = records.shuffle(512, seed=1).repeat(EPOCHS)
    return records.map(lambda r: parse(r, training), num_parallel_calls=2).batch(BATCH).prefetch(1)


def network(x, is_training):
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        x = tf.layers.conv2d(x, 16, 3, padding="same", activation=tf.nn.relu, name="conv1")
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu, name="conv2")
        return tf.layers.dense(tf.layers.flatten(x), 10, name="logits")


order = np.random.RandomState(0).permutation(len(labels))
with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
    tf.set_random_seed(1)
    write(folder, "train", order[400:])
    write(folder, "test", order[:400])
    count = sum(1 for _ in tf.python_io.tf_record_iterator(os.path.join(folder, "test-00000-of-00004.tfrecords")))
    print("%d files, %d records in one of them" % (len(os.listdir(folder)), count))

    train_x, train_y = dataset(os.path.join(folder, "train-*"), True).make_one_shot_iterator().get_next()
    test_x, test_y = dataset(os.path.join(folder, "test-*"), False).make_one_shot_iterator().get_next()
    loss = tf.losses.sparse_softmax_cross_entropy(train_y, network(train_x, True))
    train = tf.train.AdamOptimizer(5e-3).minimize(loss, tf.train.get_or_create_global_step())
    correct = tf.reduce_sum(tf.to_int32(tf.equal(tf.argmax(network(test_x, False), 1), test_y)))

    right = 0
    with tf.train.SingularMonitoredSession() as sess:
        while not sess.should_stop():
            try:
                value, _ = sess.run([loss, train])
            except tf.errors.OutOfRangeError:
                break
        while True:
            try:
                right += sess.run(correct)
            except tf.errors.OutOfRangeError:
                break
print("accuracy above 0.9: %s" % (right / 400 > 0.9))
assert right / 400 > 0.9
