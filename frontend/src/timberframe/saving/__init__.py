"""Checkpoints and saved models as files, in our own format and in TensorFlow's."""
