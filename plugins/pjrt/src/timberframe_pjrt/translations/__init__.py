"""The table of ops: each module has one family, as functions of jax.numpy and jax.lax."""

from timberframe_pjrt.translations import (
    control_flow,
    convolution,
    elementwise,
    indexing,
    losses,
    movement,
    normalization,
    optimizer,
    pooling,
    products,
    reductions,
    slicing,
)

FAMILIES = (
    elementwise, reductions, products, convolution, pooling, normalization, losses, indexing, movement, slicing,
    optimizer, control_flow,
)  # fmt: skip
"""The modules, each of which declares its ops when it is imported."""
