"""Checkpoints and saved models as files: our own format, and TensorFlow's for reading."""
