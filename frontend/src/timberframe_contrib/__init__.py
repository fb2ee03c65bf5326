"""`tf.contrib`, `tf.estimator`, `tf.feature_column` and `tf.distributions`, which `timberframe` resolves when asked for."""
