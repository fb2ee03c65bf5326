"""Levels: what networks need of a device, derived from the networks' graphs.

`core` is what an MLP and LeNet need, `inference` the frozen networks of the model benchmark, `training` their training
steps; `breadth` is everything else. ``python -m timberframe_conformance.levels`` writes the data files.
"""
