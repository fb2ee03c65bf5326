"""`tf.sets`: sets along the last dimension of tensors."""

import sys as _sys

from timberframe.api.sets import set_difference as set_difference
from timberframe.api.sets import set_intersection as set_intersection
from timberframe.api.sets import set_size as set_size
from timberframe.api.sets import set_union as set_union
from timberframe.boundary import guard as _guard

difference, intersection, size, union = set_difference, set_intersection, set_size, set_union

__all__ = [
    "difference", "intersection", "set_difference", "set_intersection", "set_size", "set_union", "size", "union",
]  # fmt: skip

_guard([_sys.modules[__name__]])
