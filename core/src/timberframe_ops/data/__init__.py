"""Pipelines of elements (`tf.data`): TensorFlow's dataset_ops and experimental_dataset_ops."""
