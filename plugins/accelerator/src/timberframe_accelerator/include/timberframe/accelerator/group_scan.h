/* Sums over the work-items of a group that come before. */
#ifndef TIMBERFRAME_ACCELERATOR_GROUP_SCAN_H
#define TIMBERFRAME_ACCELERATOR_GROUP_SCAN_H

#include <timberframe/accelerator/language.h>

#define TF_SCANNING 256 /* work-items of a group */

/* The sum of `own` over the work-items of the group that come before; *sum is that of all. shared: two for each. */
TF_INLINE tf_index tf_scan_group(TF_LOCAL tf_index *shared, tf_index own, tf_index *sum) {
  const int32_t item = tf_local_id(0);
  int32_t from = 0;
  shared[item] = own;
  tf_barrier();
  for (int32_t step = 1; step < TF_SCANNING; step *= 2, from = TF_SCANNING - from) {
    shared[TF_SCANNING - from + item] = shared[from + item] + (item >= step ? shared[from + item - step] : 0);
    tf_barrier();
  }
  const tf_index all = shared[from + TF_SCANNING - 1], before = shared[from + item] - own;
  tf_barrier();
  *sum = all;
  return before;
}

#endif
