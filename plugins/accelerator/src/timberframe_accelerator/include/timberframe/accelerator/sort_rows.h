/* The rows that index tuples name, in the order of the tuples or sorted block by block. Macros: those of tuples.h. */
#include <timberframe/accelerator/tuples.h>

TF_KERNEL tf_sort_rows(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, TF_GLOBAL uint8_t *workspace,
                       TF_GLOBAL int64_t *status, int64_t node, TF_GLOBAL const int64_t *sizes, tf_index count,
                       int32_t depth, int32_t policy) {
  TF_SHARED tf_key keys[2 * TF_BLOCK];
  TF_SHARED uint16_t positions[2 * TF_BLOCK];
  const tf_index base = (tf_index)tf_group_id(0) * TF_BLOCK;
  const int32_t here = (int32_t)(count - base < TF_BLOCK ? count - base : TF_BLOCK);
  for (int32_t e = tf_local_id(0); e < here; e += tf_local_size(0)) {
    keys[e] = tf_row(indices, base + e, depth, sizes, policy, status, node);
    positions[e] = (uint16_t)e;
  }
  tf_barrier();
  const int32_t sorted = tf_sort_block(keys, positions, here, base);
  for (int32_t e = tf_local_id(0); e < here; e += tf_local_size(0)) {
    TF_KEYS(workspace, 0, count)[base + e] = keys[sorted + e];
    TF_POSITIONS(workspace, 0, count)[base + e] = base + positions[sorted + e];
  }
}

TF_KERNEL tf_find_rows(TF_GLOBAL const TF_STORAGE(TINDEX) *indices, TF_GLOBAL uint8_t *workspace,
                       TF_GLOBAL int64_t *status, int64_t node, TF_GLOBAL const int64_t *sizes, tf_index count,
                       int32_t depth, int32_t policy) {
  TF_EACH(i, count) {
    TF_KEYS(workspace, 0, count)[i] = tf_row(indices, i, depth, sizes, policy, status, node);
    TF_POSITIONS(workspace, 0, count)[i] = i;
  }
}
