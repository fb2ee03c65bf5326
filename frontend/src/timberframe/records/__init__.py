"""TFRecord files: sequences of byte strings with checksums, in which examples and TensorBoard's events are kept."""
