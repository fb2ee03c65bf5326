/* Combining rows of updates with rows of a target. T: dtype; MODE: add, sub, mul, div, min, max, or, xor or last;
 * KEY: dtype of row numbers; INTEGER, SIGNED: defined for such T; ROUND_EACH: defined where each step rounds to T. */
#include <timberframe/accelerator/sort.h>

typedef TF_VALUE(T) tf_element;

#ifdef INTEGER
/* sums and products wrap around, which is defined for unsigned integers alone */
#define TF_COMBINE_add(a, b) ((tf_element)((uint64_t)(a) + (uint64_t)(b)))
#define TF_COMBINE_sub(a, b) ((tf_element)((uint64_t)(a) - (uint64_t)(b)))
#define TF_COMBINE_mul(a, b) ((tf_element)((uint64_t)(a) * (uint64_t)(b)))
#define TF_COMBINE_or(a, b) ((tf_element)((a) | (b)))
#define TF_COMBINE_xor(a, b) ((tf_element)((a) ^ (b)))
#else
#define TF_COMBINE_add(a, b) ((a) + (b))
#define TF_COMBINE_sub(a, b) ((a) - (b))
#define TF_COMBINE_mul(a, b) ((a) * (b))
#endif
#ifdef SIGNED
#define TF_COMBINE_div(a, b) ((b) == -1 ? TF_COMBINE_sub(0, a) : (tf_element)((a) / (b)))
#else
#define TF_COMBINE_div(a, b) ((a) / (b))
#endif
#define TF_COMBINE_min(a, b) ((b) < (a) ? (b) : (a))
#define TF_COMBINE_max(a, b) ((b) > (a) ? (b) : (a))
#define TF_COMBINE_last(a, b) (b)
#define TF_COMBINED__(mode, a, b) TF_COMBINE_##mode(a, b)
#define TF_COMBINED_(mode, a, b) TF_COMBINED__(mode, a, b)

#ifdef ROUND_EACH
#define TF_ROUNDED__(dtype, x) tf_float32_from_##dtype(tf_##dtype##_from_float32(x))
#define TF_ROUNDED_(dtype, x) TF_ROUNDED__(dtype, x)
#define TF_COMBINED(a, b) TF_ROUNDED_(T, TF_COMBINED_(MODE, a, b))
#else
#define TF_COMBINED(a, b) TF_COMBINED_(MODE, a, b)
#endif

/* Side `side` of the workspace holds the rows that `count` updates go to, sorted, and which updates these are. Each
 * element of the target combines the updates of its row in their order. Update u, column c lies at u * step +
 * c * column_step. Nothing is written after an error. */
TF_KERNEL tf_combine(TF_GLOBAL uint8_t *workspace, TF_GLOBAL const TF_STORAGE(T) *updates,
                     TF_GLOBAL TF_STORAGE(T) *target, TF_GLOBAL const int64_t *status, tf_index count, tf_index inner,
                     tf_index rows, tf_index side, tf_index step, tf_index column_step) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, count);
  TF_GLOBAL const tf_index *places = TF_PLACES(workspace, side, count);
  if (status[0]) return;
  TF_EACH(i, count * inner) {
    const tf_index first = i / inner, column = i - first * inner;
    const tf_key row = keys[first];
    if (row >= (tf_key)rows || (first && keys[first - 1] == row)) continue;
    const tf_index at = (tf_index)row * inner + column;
    tf_element a = TF_LOAD(T, target, at);
    for (tf_index j = first; j < count && keys[j] == row; j++) {
      const tf_element b = TF_LOAD(T, updates, places[j] * step + column * column_step);
      a = TF_COMBINED(a, b);
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
