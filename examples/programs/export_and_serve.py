"""Export and serving: a SavedModel with two signatures, used from its folder alone, by a predictor, and frozen."""

import os
import tempfile

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import timberframe as tf

signatures = tf.saved_model.signature_def_utils
keys = tf.saved_model.signature_constants

x, y = load_wine(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.3, random_state=0)
NAMES = ["a", "b", "c"]


def export(folder):
    """Trains a network and writes it; its inputs are serialized examples, or arrays of measurements."""
    with tf.Graph().as_default(), tf.Session() as sess:
        serialized = tf.placeholder(tf.string, [None], "tf_example")
        parsed = tf.parse_example(serialized, {"x": tf.FixedLenFeature([13], tf.float32)})
        inputs = tf.identity(parsed["x"], "x")
        labels = tf.placeholder(tf.int64, [None])
        hidden = tf.layers.dense(inputs, 16, tf.nn.tanh, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
        logits = tf.layers.dense(hidden, 3, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
        scores = tf.nn.softmax(logits, name="scores")
        table = tf.contrib.lookup.index_to_string_table_from_tensor(tf.constant(NAMES))
        values, indices = tf.nn.top_k(scores, 3)
        classes = table.lookup(tf.to_int64(indices))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer(0.02).minimize(loss)
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(60):
            value, _ = sess.run([loss, train], {inputs: train_x, labels: train_y})
        print("loss %.3f" % value)

        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        classify = signatures.classification_signature_def(serialized, classes, values)
        predict = signatures.predict_signature_def({"x": inputs}, {"scores": scores})
        builder.add_meta_graph_and_variables(
            sess,
            [tf.saved_model.tag_constants.SERVING],
            signature_def_map={"predict": predict, keys.DEFAULT_SERVING_SIGNATURE_DEF_KEY: classify},
            legacy_init_op=tf.group(tf.tables_initializer(), name="legacy_init_op"),
        )
        builder.save()
        constant = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ["scores"])
        with tf.gfile.GFile(os.path.join(folder, "frozen.pb"), "wb") as f:
            f.write(constant.SerializeToString())
        return sess.run(scores, {inputs: test_x})


def example(row):
    feature = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=row))}
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


with tempfile.TemporaryDirectory() as out:
    folder = os.path.join(out, "1")
    wanted = export(folder)

    with tf.Graph().as_default() as graph, tf.Session() as sess:
        meta = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], folder)
        print("signatures: %s" % sorted(meta.signature_def))
        served = meta.signature_def["serving_default"]
        outputs = [served.outputs[name].name for name in (keys.CLASSIFY_OUTPUT_CLASSES, keys.CLASSIFY_OUTPUT_SCORES)]
        requests = [example(row) for row in test_x]
        classes, scores = sess.run(outputs, {served.inputs[keys.CLASSIFY_INPUTS].name: requests})
    assert np.allclose(scores[:, 0], wanted.max(1), atol=1e-5)

    predictor = tf.contrib.predictor.from_saved_model(folder, signature_def_key="predict")
    assert np.allclose(predictor({"x": test_x})["scores"], wanted, atol=1e-5)

    graph_def = tf.GraphDef()
    with tf.gfile.GFile(os.path.join(folder, "frozen.pb"), "rb") as f:
        graph_def.ParseFromString(f.read())
    with tf.Graph().as_default(), tf.Session() as sess:
        (frozen,) = tf.import_graph_def(graph_def, return_elements=["scores:0"], name="")
        assert np.allclose(sess.run(frozen, {"x:0": test_x}), wanted, atol=1e-5)

right = np.mean([name.decode() == NAMES[label] for name, label in zip(classes[:, 0], test_y)])
print("accuracy %.3f" % right)
assert right > 0.9
