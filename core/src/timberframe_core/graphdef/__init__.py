"""GraphDef, TensorFlow's file format for graphs: its messages, tensors in it, export and import."""
