"""What defines an op: OpDef, signature, shape functions, samples, accuracy, and the registry."""
