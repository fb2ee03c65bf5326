"""Names of TensorFlow 1 that are not here on purpose, with what serves instead."""

from __future__ import annotations

NEVER = {
    "keras": "Keras is a library of its own; tf.layers has the same layers for graphs",
    "optimizers": "tf.train has the optimizers",
    "contrib.tpu.CrossShardOptimizer": "there are no TPUs; the optimizer itself serves all other devices",
    "contrib.cluster_resolver": "there are no TPUs; tf.train.ClusterSpec describes a cluster",
    "contrib.distribute": "tf.device places the parts of a graph on devices",
    "distribute": "tf.device places the parts of a graph on devices",
    "contrib.learn.python.learn.datasets.base.maybe_download": "put the files into the folder; nothing is downloaded",
    "profiler.experimental": "tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) and tf.RunMetadata trace runs",
    "contrib.learn.DNNClassifier": "tf.estimator has the estimators",
    "contrib.learn.DNNRegressor": "tf.estimator has the estimators",
    "contrib.learn.Estimator": "tf.estimator has the estimators",
    "contrib.learn.Experiment": "tf.estimator has the estimators",
    "contrib.learn.LinearClassifier": "tf.estimator has the estimators",
    "contrib.learn.LinearRegressor": "tf.estimator has the estimators",
    "contrib.learn.SKCompat": "tf.estimator has the estimators",
    "contrib.learn.TRAIN": "tf.estimator.ModeKeys.TRAIN",
    "contrib.lite": "tf.saved_model keeps models",
    "lite": "tf.saved_model keeps models",
    "nn.seq2seq": "tf.contrib.legacy_seq2seq has its networks, decoders and losses",
    "xla": "plugins compile clusters; see docs/write-a-compiler.md",
    "test.Benchmark": "conformance bench times devices",
    "mul": "tf.multiply",
    "sub": "tf.subtract",
    "neg": "tf.negative",
    "pack": "tf.stack",
    "unpack": "tf.unstack",
    "concat_v2": "tf.concat",
    "select": "tf.where",
    "scalar_summary": "tf.summary.scalar",
    "histogram_summary": "tf.summary.histogram",
    "image_summary": "tf.summary.image",
    "audio_summary": "tf.summary.audio",
    "merge_summary": "tf.summary.merge",
    "merge_all_summaries": "tf.summary.merge_all",
    "train.SummaryWriter": "tf.summary.FileWriter",
    "batch_matmul": "tf.matmul",
    "batch_svd": "tf.svd",
    "batch_cholesky": "tf.cholesky",
    "nn.deconv2d": "tf.nn.conv2d_transpose",
    "complex_abs": "tf.abs",
    "inv": "tf.reciprocal",
}
"""Names, each with all below it. Names that came before TensorFlow 1.0 or after 1.15 are among them."""


FOREIGN = {
    "Example": "tf.train.Example",
    "Operations": "tf.Operation",
    "Variables": "tf.Variable",
    "Varialbe": "tf.Variable",
    "embedding_lookup": "tf.nn.embedding_lookup",
    "model": "tf.estimator and tf.layers make models",
    "nn.sigmoid_softmax_with_logits": "tf.nn.sigmoid_cross_entropy_with_logits",
    "placeholders": "tf.placeholder",
}
"""Names that programs use and that TensorFlow 1 does not have: slips, and names of their own; with what is meant."""


def hint(name: str) -> str:
    """Returns what serves instead of a name such as `keras.layers.Dense`, empty where nothing is known."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        found = NEVER.get(".".join(parts[:end]))
        if found is not None:
            return found
    if name in FOREIGN:
        return f"not a name of TensorFlow; {FOREIGN[name]} may be meant"
    return ""
