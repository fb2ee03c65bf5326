"""The update ops of optimizers: TensorFlow's training_ops."""
