"""An estimator of convolutions: it trains and evaluates by turns, reading tf.data, and exports a saved model."""

import os
import tempfile

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

STEPS, BATCH = 150, 64

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32).reshape(-1, 8, 8, 1), labels.astype(np.int64), test_size=0.3, random_state=0
)


def conv_net(x, training):
    with tf.variable_scope("ConvNet", initializer=tf.glorot_uniform_initializer(seed=1)):
        for filters in (16, 32):
            x = tf.layers.conv2d(x, filters, 3, padding="same", activation=tf.nn.relu)
            x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.dense(tf.layers.flatten(x), 48, activation=tf.nn.relu)
        x = tf.layers.dropout(x, rate=0.25, training=training)
        return tf.layers.dense(x, 10)


def model_fn(features, labels, mode):
    logits = conv_net(features["images"], mode == tf.estimator.ModeKeys.TRAIN)
    predictions = {"digit": tf.argmax(logits, 1), "shares": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"digits": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["digit"])}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    train_op = tf.train.AdamOptimizer(4e-3).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train_input():
    data = tf.data.Dataset.from_tensor_slices(({"images": train_x}, train_y))
    return data.shuffle(1500, seed=2).repeat().batch(BATCH)


def test_input():
    return tf.data.Dataset.from_tensor_slices(({"images": test_x}, test_y)).batch(BATCH)


def serving_input():
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    return tf.estimator.export.ServingInputReceiver({"images": x}, {"images": x})


with tempfile.TemporaryDirectory() as folder:
    config = tf.estimator.RunConfig(tf_random_seed=3, save_checkpoints_steps=75)
    model = tf.estimator.Estimator(model_fn, model_dir=os.path.join(folder, "model"), config=config)
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(train_input, max_steps=STEPS),
        tf.estimator.EvalSpec(test_input, steps=None, start_delay_secs=0, throttle_secs=0),
    )
    results = model.evaluate(test_input)
    exported = model.export_savedmodel(os.path.join(folder, "export"), serving_input)
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], exported.decode())
        signature = meta.signature_def["digits"]
        fed = {signature.inputs["images"].name: test_x}
        served = sess.run(signature.outputs["digit"].name, fed)

accuracy = (served == test_y).mean()
print("after %d steps: accuracy above 0.95: %s" % (results["global_step"], results["accuracy"] > 0.95))
print("the saved model gives the same accuracy: %s" % np.isclose(accuracy, results["accuracy"]))
assert results["accuracy"] > 0.95
assert np.isclose(accuracy, results["accuracy"])
