"""Serves models: versions that change while they serve, batches, TensorFlow Serving's protocols and the open one."""

__version__ = "0.1.0"
