/* ResourceCountUpTo. T: dtype of the counter. */
#include <timberframe/accelerator/language.h>

/* Reason 1: the counter is not below {0}. */
TF_KERNEL tf_count_up(TF_GLOBAL const TF_STORAGE(T) *counter, TF_GLOBAL TF_STORAGE(T) *following,
                      TF_GLOBAL TF_STORAGE(T) *out, TF_GLOBAL int64_t *status, int64_t node, int64_t limit) {
  const TF_STORAGE(T) value = *counter;
  if (tf_global_id(0)) return;
  if (value >= limit) tf_report(status, node, 1, limit, 0, 0);
  *out = value;
  *following = value + (value < limit);
}
