/* Combining rows of updates with rows of a target. T: dtype; KEY: dtype of row numbers; INTEGER, SIGNED, HALF: defined
 * for such T. */
#include <timberframe/accelerator/combining.h>
#include <timberframe/accelerator/division.h>
#include <timberframe/accelerator/sort.h>

/* Side `side` of the workspace holds the rows that `count` updates go to, sorted, and which updates these are. Each
 * element of the target combines the updates of its row in their order. Update u, column c lies at u * step +
 * c * column_step. With `each`, every step is rounded to T, else the last. Nothing is written after an error. */
TF_SCALAR_KERNEL tf_combine(TF_GLOBAL uint8_t *workspace, TF_GLOBAL const TF_STORAGE(T) *updates,
                            TF_GLOBAL TF_STORAGE(T) *target, TF_GLOBAL const int64_t *status, tf_index count,
                            TF_DIVISOR(inner), tf_index rows, tf_index side, tf_index step, tf_index column_step,
                            int32_t mode, int32_t each) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, count);
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, count);
  if (status[0]) return;
  TF_EACH(i, count * inner) {
    const tf_index first = TF_QUOTIENT(i, inner), column = i - first * inner;
    const tf_key row = keys[first];
    if (row >= (tf_key)rows || (first && keys[first - 1] == row)) continue;
    const tf_index at = (tf_index)row * inner + column;
    tf_element a = TF_LOAD(T, target, at);
    for (tf_index j = first; j < count && keys[j] == row; j++) {
      const tf_element b = TF_LOAD(T, updates, positions[j] * step + column * column_step);
      a = tf_combined(a, b, mode);
      if (each) a = tf_rounded(a);
    }
    TF_STORE(T, target, at, a);
  }
}

#ifdef INTEGER
/* Reason 2: update {0} is 0. */
TF_KERNEL tf_check_divisors(TF_GLOBAL const TF_STORAGE(T) *updates, TF_GLOBAL int64_t *status, int64_t node,
                            tf_index size) {
  TF_EACH(i, size) {
    if (!updates[i]) tf_report(status, node, 2, i, 0, 0);
  }
}
#endif
