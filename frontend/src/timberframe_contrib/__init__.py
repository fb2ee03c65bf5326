"""`tf.contrib`, `tf.distributions`, `tf.estimator`, `tf.feature_column`: `timberframe` imports them when asked for."""

from timberframe_core.library import add_library_folder as _add_library_folder

_add_library_folder(__file__)
