/* Keeping the positions i below `count` for which COMPACT_KEEPS(i) holds, in order: COMPACT_EMIT(at, i) takes each with
 * its number among those kept. COMPACT_PARAMETERS: further parameters that both use, each ending with a comma.
 *
 * With more than TF_COMPACTED positions, tf_count_kept goes first. */
#ifndef TIMBERFRAME_ACCELERATOR_COMPACT_H
#define TIMBERFRAME_ACCELERATOR_COMPACT_H

#include <timberframe/accelerator/group_scan.h>

#define TF_RUN 16                             /* positions of a work-item, one after the other */
#define TF_COMPACTED (TF_SCANNING * TF_RUN) /* positions of a group */

TF_KERNEL tf_count_kept(COMPACT_PARAMETERS TF_GLOBAL tf_index *counts, tf_index count) {
  TF_SHARED tf_index shared[2 * TF_SCANNING];
  const tf_index group = (tf_index)tf_group_id(0), first = group * TF_COMPACTED + tf_local_id(0) * TF_RUN;
  tf_index kept = 0, sum;
  for (tf_index i = first; i < first + TF_RUN && i < count; i++) kept += COMPACT_KEEPS(i) ? 1 : 0;
  tf_scan_group(shared, kept, &sum);
  if (!tf_local_id(0)) counts[group] = sum;
}

/* *total becomes how many are kept. */
TF_KERNEL tf_compact(COMPACT_PARAMETERS TF_GLOBAL const tf_index *counts, TF_GLOBAL int64_t *total, tf_index count) {
  TF_SHARED tf_index shared[2 * TF_SCANNING];
  const tf_index group = (tf_index)tf_group_id(0), first = group * TF_COMPACTED + tf_local_id(0) * TF_RUN;
  tf_index part = 0, before, kept = 0, sum;
  for (tf_index g = tf_local_id(0); g < group; g += TF_SCANNING) part += counts[g];
  tf_scan_group(shared, part, &before);
  for (tf_index i = first; i < first + TF_RUN && i < count; i++) kept += COMPACT_KEEPS(i) ? 1 : 0;
  tf_index at = before + tf_scan_group(shared, kept, &sum);
  for (tf_index i = first; i < first + TF_RUN && i < count; i++) {
    if (COMPACT_KEEPS(i)) {
      COMPACT_EMIT(at, i);
      at++;
    }
  }
  if (group == (tf_index)tf_group_count(0) - 1 && !tf_local_id(0)) *total = before + sum;
}

#endif
