"""TensorFlow's ops that the frame need not know, in TensorFlow's families, and the rewrites that serve them alone."""
