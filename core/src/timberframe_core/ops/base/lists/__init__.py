"""Lists, arrays and stacks of tensors: TensorFlow's list_ops and data_flow_ops."""
