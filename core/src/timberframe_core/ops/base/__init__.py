"""The ops that the frame itself must know, in TensorFlow's families."""
