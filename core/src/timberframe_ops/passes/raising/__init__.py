"""Raising: turns TensorFlow 1's control flow and reference variables into While, If and resource variables.

A graph keeps the nodes that it was imported with, so that each can be fetched by its name and an export gives the same
GraphDef again. What a run needs of it is rewritten into another graph before it is compiled:

|file|what it does|
|-|-|
|`graphs.py`|writes the whole graph, and checks what is fetched|
|`frames.py`|finds the loops that operations belong to|
|`regions.py`|finds under which conditions the operations of one loop run|
|`schedule.py`|writes operations in an order in which those of one branch come together|
|`branches.py`, `loops.py`|write the If and While|
|`references.py`|writes reads and writes of variables in the places of those of references|
|`scope.py`|what stands for the source's tensors in each body|
"""
