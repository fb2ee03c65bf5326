/* Where runs of equal keys begin. KEY: dtype of the keys. */
#include <timberframe/accelerator/sort.h>

/* begins[n] is where the first key that is n or higher stands among the sorted ones on side `side` of the workspace. */
TF_KERNEL tf_find_bounds(TF_GLOBAL uint8_t *workspace, TF_GLOBAL int64_t *begins, tf_index numbers, tf_index count,
                         tf_index side) {
  TF_EACH(n, numbers) {
    begins[n] = tf_find(TF_KEYS(workspace, side, count), TF_POSITIONS(workspace, side, count), count, (tf_key)n, 0, 0);
  }
}
