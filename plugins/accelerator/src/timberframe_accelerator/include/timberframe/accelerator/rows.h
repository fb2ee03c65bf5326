/* For kernels over the rows of [rows, classes]: a group takes a row, or with EACH a work-item does.
 *
 * A kernel begins with TF_ROW_KERNEL, goes over rows by TF_EACH_LINE and over the elements of one by TF_EACH_CLASS, and
 * joins what the work-items of a row found by tf_row_sum and tf_row_maximum, which all of them must reach. T is the
 * dtype and PRECISION 32 or 64, for TF_FUNCTION(exp)(x). Groups have a power of two of work-items. */
#include <timberframe/accelerator/language.h>
#include <timberframe/elementwise.h>

typedef TF_VALUE(T) value;

#if PRECISION == 64
#define TF_FUNCTION(name) tf_##name##_f64
#else
#define TF_FUNCTION(name) tf_##name##_f32
#endif
#define TF_EACH_CLASS(c, classes) for (tf_index c = lane; c < (classes); c += lanes)
#define GROUP_ITEMS 256 /* most work-items of a group */

#ifdef EACH

#define TF_ROW_KERNEL const tf_index lane = 0, lanes = 1;
#define TF_EACH_LINE(row, rows) TF_EACH(row, rows)
#define tf_row_sum(v) (v)
#define tf_row_maximum(v) (v)

#else

#define TF_ROW_KERNEL               \
  TF_SHARED value shared[GROUP_ITEMS]; \
  const tf_index lane = tf_local_id(0), lanes = tf_local_size(0);
#define TF_EACH_LINE(row, rows) \
  for (tf_index row = (tf_index)tf_group_id(0); row < (rows); row += (tf_index)tf_group_count(0))

#define TF_JOIN_ROW(name, a, b, joined)                                             \
  TF_INLINE value tf_join_row_##name(TF_LOCAL value *shared, value v) {         \
    const int32_t item = tf_local_id(0);                                            \
    tf_barrier(); /* all have read the result before */                             \
    shared[item] = v;                                                               \
    for (int32_t count = tf_local_size(0) / 2; count; count /= 2) {                 \
      tf_barrier();                                                                 \
      if (item < count) {                                                           \
        const value a = shared[item], b = shared[item + count];                     \
        shared[item] = joined;                                                      \
      }                                                                             \
    }                                                                               \
    tf_barrier();                                                                   \
    return shared[0];                                                               \
  }
TF_JOIN_ROW(sum, a, b, a + b)
TF_JOIN_ROW(maximum, a, b, b > a ? b : a)
#define tf_row_sum(v) tf_join_row_sum(shared, v)
#define tf_row_maximum(v) tf_join_row_maximum(shared, v)

#endif
