"""Branches, loops, calls, and the edges between parts of a graph: TensorFlow's control_flow_ops and functional_ops."""
