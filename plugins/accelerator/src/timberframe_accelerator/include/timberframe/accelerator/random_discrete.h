/* Shuffled rows, and the key and counter of a pair of seeds. */
#include <timberframe/accelerator/random_origin.h>

/* Fisher and Yates's exchanges, each of which needs those before it: one work-item makes the order of the rows. Rows
 * stay as they are where there is no generator, since the next kernel uses their order nevertheless. */
TF_KERNEL tf_permute(TF_ORIGIN, TF_GLOBAL tf_index *order, tf_index rows) {
  uint32_t x[4];
  if (tf_global_id(0) != 0) return;
  for (tf_index i = 0; i < rows; i++) order[i] = i;
  TF_OPEN
  for (tf_index i = 0; i < rows - 1; i++) {
    if (i % 4 == 0) philox_block(&g, (uint64_t)i / 4, x);
    const tf_index j = i + (tf_index)(x[i % 4] % (uint32_t)(rows - i)), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

TF_KERNEL tf_key_counter(TF_ORIGIN, TF_GLOBAL uint64_t *out_key, TF_GLOBAL uint64_t *out_counter,
                         TF_GLOBAL int32_t *out_algorithm, int32_t tells_algorithm) {
  TF_OPEN
  if (tf_global_id(0) != 0) return;
  out_key[0] = g.key;
  out_counter[0] = g.low;
  out_counter[1] = g.high;
  if (tells_algorithm) out_algorithm[0] = PHILOX_ALGORITHM;
}
