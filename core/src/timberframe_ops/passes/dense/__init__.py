"""Dense tensors in place of the lists that loops work on, for the shapes of one set of feeds.

|file|what it does|
|-|-|
|`graph.py`|copies a graph, with a dense tensor in place of each list|
|`lists.py`|what takes the place of each op on lists|
|`arrays.py`|what takes the place of each op on arrays of TensorFlow 1's graphs|
|`loops.py`|copies loops: which of their variables are lists of which size|
"""
