"""An estimator with a model function of its own: a multilayer perceptron of handwritten digits."""

import tempfile

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import timberframe as tf

STEPS, BATCH = 200, 64

images, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    (images / 16).astype(np.float32), labels.astype(np.int64), test_size=0.3, random_state=0
)


def neural_net(features):
    layer = features["images"]
    for i, units in enumerate([64, 48]):
        layer = tf.layers.dense(layer, units, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=i))
    return tf.layers.dense(layer, 10, kernel_initializer=tf.glorot_uniform_initializer(seed=9))


def model_fn(features, labels, mode, params):
    logits = neural_net(features)
    predicted = tf.argmax(logits, axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"digit": predicted, "shares": tf.nn.softmax(logits)})
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))
    optimizer = tf.train.AdamOptimizer(learning_rate=params["rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels=labels, predictions=predicted)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


with tempfile.TemporaryDirectory() as folder:
    config = tf.estimator.RunConfig(model_dir=folder, tf_random_seed=1, save_checkpoints_steps=100)
    model = tf.estimator.Estimator(model_fn, config=config, params={"rate": 5e-3})
    train_input = tf.estimator.inputs.numpy_input_fn(
        x={"images": train_x}, y=train_y, batch_size=BATCH, num_epochs=None, shuffle=True
    )
    model.train(train_input, steps=STEPS)
    test_input = tf.estimator.inputs.numpy_input_fn(
        x={"images": test_x}, y=test_y, batch_size=BATCH, num_epochs=1, shuffle=False
    )
    results = model.evaluate(test_input)
    one = tf.estimator.inputs.numpy_input_fn(x={"images": test_x[:5]}, shuffle=False)
    predictions = [p["digit"] for p in model.predict(one)]

print("after %d steps: accuracy above 0.95: %s" % (results["global_step"], results["accuracy"] > 0.95))
print("predicted %s, labelled %s" % (np.array(predictions), test_y[:5]))
assert results["accuracy"] > 0.95
assert len(predictions) == 5
