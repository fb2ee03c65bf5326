/* GatherNd and similar ops. T: unsigned integer that divides a slice; those of tuples.h. */
#include <timberframe/accelerator/tuples.h>

TF_KERNEL tf_gather_nd(TF_GLOBAL const TF_STORAGE(T) *params, TF_GLOBAL const TF_STORAGE(TINDEX) *indices,
                       TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int64_t *status, int64_t node,
                       TF_GLOBAL const int64_t *sizes, tf_index size, tf_index inner, int32_t depth, int32_t policy) {
  TF_EACH(i, size) {
    const tf_index tuple = i / inner;
    const tf_key row = tf_row(indices, tuple, depth, sizes, policy, status, node);
    out[i] = row == TF_NO_ROW ? 0 : params[(tf_index)row * inner + i - tuple * inner];
  }
}
