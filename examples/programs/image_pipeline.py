"""An image pipeline: photographs are decoded, cut, flipped, brightened, resized, normalised and written again."""

import os
import tempfile

import numpy as np
from sklearn import datasets

import timberframe as tf

folder = os.path.join(os.path.dirname(datasets.__file__), "images")
SIDE = 96

path = tf.placeholder(tf.string, [])
image = tf.image.decode_jpeg(tf.read_file(path), channels=3)
image.set_shape([None, None, 3])
pixels = tf.image.convert_image_dtype(image, tf.float32)

cut = tf.image.central_crop(pixels, 0.75)
small = tf.image.resize_images(cut, [SIDE, SIDE], method=tf.image.ResizeMethod.BILINEAR)
flipped = tf.image.flip_left_right(small)
bright = tf.image.adjust_brightness(flipped, 0.1)
contrast = tf.image.adjust_contrast(bright, 1.2)
augmented = tf.clip_by_value(contrast, 0.0, 1.0)
grey = tf.image.rgb_to_grayscale(augmented)
network_input = tf.image.per_image_standardization(augmented)
random_part = tf.random_crop(small, [64, 64, 3], seed=1)
mirrored = tf.image.random_flip_left_right(random_part, seed=2)
boxes = tf.image.draw_bounding_boxes(tf.expand_dims(small, 0), [[[0.1, 0.1, 0.6, 0.6]]])

as_bytes = tf.image.convert_image_dtype(augmented, tf.uint8, saturate=True)
png = tf.image.encode_png(as_bytes)
written = tf.placeholder(tf.string, [])
write = tf.write_file(written, png)
read_again = tf.image.decode_png(tf.read_file(written))

with tempfile.TemporaryDirectory() as out, tf.Session() as sess:
    for name in ("china.jpg", "flower.jpg"):
        fed = {path: os.path.join(folder, name), written: os.path.join(out, name + ".png")}
        size, value, grey_mean = sess.run([tf.shape(image), network_input, tf.reduce_mean(grey)], fed)
        print("%s: %d x %d, grey %.3f" % (name, size[1], size[0], grey_mean))
        print("  input of a network: mean %.4f, deviation %.4f" % (abs(value.mean()), value.std()))
        saved, _ = sess.run([as_bytes, write], fed)
        assert (sess.run(read_again, fed) == saved).all()  # PNG loses nothing
        one, other = sess.run(small, fed), sess.run(flipped, fed)
        assert np.allclose(one[:, ::-1], other)
        assert sess.run(mirrored, fed).shape == (64, 64, 3)
        assert abs(value.std() - 1) < 1e-3
        drawn = sess.run(boxes, fed)[0]
        print("  a box changes %d pixels" % (drawn != one).any(axis=2).sum())
