"""Ops by which data gets into graphs: TensorFlow's script_ops, data_flow_ops and lookup_ops."""
