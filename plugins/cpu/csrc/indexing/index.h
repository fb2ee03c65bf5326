/* Reading integer tensors whose dtype is known at run time, and turning index tuples into rows. */
#ifndef TIMBERFRAME_CPU_INDEXING_INDEX_H
#define TIMBERFRAME_CPU_INDEXING_INDEX_H

#include <timberframe/kernel.h>

static inline int64_t load_index(const tf_tensor *t, int64_t i) {
  switch (t->dtype) {
    case TF_INT64: return ((const int64_t *)t->data)[i];
    case TF_INT32: return ((const int32_t *)t->data)[i];
    case TF_INT16: return ((const int16_t *)t->data)[i];
    case TF_INT8: return ((const int8_t *)t->data)[i];
    case TF_UINT16: return ((const uint16_t *)t->data)[i];
    default: return ((const uint8_t *)t->data)[i];
  }
}

/* The row that tuple number `tuple` of `depth` indices names in a tensor of these sizes; -1, and the position of the
 * first bad index in *bad, when one is out of range. */
static inline int64_t tuple_row(const tf_tensor *indices, int64_t tuple, int64_t depth, const int64_t *sizes,
                                int64_t *bad) {
  int64_t row = 0;
  for (int64_t d = 0; d < depth; d++) {
    int64_t index = load_index(indices, tuple * depth + d);
    if (index < 0 || index >= sizes[d]) return *bad = d, -1;
    row = row * sizes[d] + index;
  }
  return row;
}

#endif
