"""Variables: TensorFlow's state_ops and resource_variable_ops."""
