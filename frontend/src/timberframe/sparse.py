"""`tf.sparse`: operations on sparse tensors, by the names without `sparse_`."""

import sys as _sys

from timberframe.api.accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
from timberframe.api.sparse import SparseTensor as SparseTensor
from timberframe.api.sparse import expand_sparse_dims as expand_dims
from timberframe.api.sparse import from_dense as from_dense
from timberframe.api.sparse import sparse_concat as concat
from timberframe.api.sparse import sparse_eye as eye
from timberframe.api.sparse import sparse_fill_empty_rows as fill_empty_rows
from timberframe.api.sparse import sparse_mask as mask
from timberframe.api.sparse import sparse_merge as merge
from timberframe.api.sparse import sparse_placeholder as placeholder
from timberframe.api.sparse import sparse_reorder as reorder
from timberframe.api.sparse import sparse_reset_shape as reset_shape
from timberframe.api.sparse import sparse_reshape as reshape
from timberframe.api.sparse import sparse_retain as retain
from timberframe.api.sparse import sparse_slice as slice
from timberframe.api.sparse import sparse_split as split
from timberframe.api.sparse import sparse_tensor_to_dense as to_dense
from timberframe.api.sparse import sparse_to_indicator as to_indicator
from timberframe.api.sparse import sparse_transpose as transpose
from timberframe.api.sparse_crosses import cross as cross
from timberframe.api.sparse_crosses import cross_hashed as cross_hashed
from timberframe.api.sparse_math import sparse_add as add
from timberframe.api.sparse_math import sparse_maximum as maximum
from timberframe.api.sparse_math import sparse_minimum as minimum
from timberframe.api.sparse_math import sparse_reduce_max as reduce_max
from timberframe.api.sparse_math import sparse_reduce_max_sparse as reduce_max_sparse
from timberframe.api.sparse_math import sparse_reduce_sum as reduce_sum
from timberframe.api.sparse_math import sparse_reduce_sum_sparse as reduce_sum_sparse
from timberframe.api.sparse_math import sparse_segment_mean as segment_mean
from timberframe.api.sparse_math import sparse_segment_sqrt_n as segment_sqrt_n
from timberframe.api.sparse_math import sparse_segment_sum as segment_sum
from timberframe.api.sparse_math import sparse_softmax as softmax
from timberframe.api.sparse_math import sparse_tensor_dense_matmul as sparse_dense_matmul
from timberframe.boundary import guard as _guard

matmul = sparse_dense_matmul

__all__ = [
    "SparseConditionalAccumulator", "SparseTensor", "add", "concat", "cross", "cross_hashed", "expand_dims", "eye",
    "fill_empty_rows", "from_dense", "mask", "matmul", "maximum", "merge", "minimum", "placeholder", "reduce_max",
    "reduce_max_sparse", "reduce_sum", "reduce_sum_sparse", "reorder", "reset_shape", "reshape", "retain",
    "segment_mean", "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split", "to_dense",
    "to_indicator", "transpose",
]  # fmt: skip

_guard([_sys.modules[__name__]])  # here, since `import timberframe` does not load this module
