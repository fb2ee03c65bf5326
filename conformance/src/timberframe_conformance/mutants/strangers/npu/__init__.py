"""NPU: a device as accelerators for inference are, into which known bugs are planted.

It has an arena of its own that the host writes to directly, a queue, convolutions over padded channels, prepared
weights, and a kernel for several nodes. Ops for which it has no kernel of its own are computed by their references, in
its queue and on its memory.
"""
