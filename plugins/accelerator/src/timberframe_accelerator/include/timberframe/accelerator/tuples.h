/* Finding the rows that index tuples name, and sorting the tuples by them. TINDEX: dtype of the indices; KEY: of rows.
 *
 * A tuple that names no row gets the highest key, so it comes last. */
#ifndef TIMBERFRAME_ACCELERATOR_TUPLES_H
#define TIMBERFRAME_ACCELERATOR_TUPLES_H

#include <timberframe/accelerator/sort.h>

#define TF_NO_ROW ((tf_key)-1)
/* What to do about indices out of range: report them, leave their tuples out, or leave out those below zero only. */
#define TF_REFUSE 0
#define TF_IGNORE 1
#define TF_IGNORE_NEGATIVE 2

/* The row that tuple number `tuple` of `depth` indices names in a tensor of these sizes, or TF_NO_ROW. Reason 1: tuple
 * {0} has {1} in dimension {2}, which is not below {3}. */
static inline tf_key tf_row(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, tf_index tuple, int32_t depth,
                            TF_GLOBAL const int64_t *sizes, int32_t policy, TF_GLOBAL int64_t *status, int64_t node) {
  tf_key row = 0;
  for (int32_t d = 0; d < depth; d++) {
    const int64_t index = TF_LOAD(TINDEX, indices, tuple * depth + d), size = sizes[d];
    if (index < 0 || index >= size) {
      if (policy == TF_REFUSE || (policy == TF_IGNORE_NEGATIVE && index >= 0)) {
        tf_report_details(status, node, 1, tuple, index, d, size);
      }
      return TF_NO_ROW;
    }
    row = row * (tf_key)size + (tf_key)index;
  }
  return row;
}

#endif
