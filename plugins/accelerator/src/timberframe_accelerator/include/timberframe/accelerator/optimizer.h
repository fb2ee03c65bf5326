/* Updates of a variable and its slots by optimizers.
 *
 * DTYPE: of variable, slots, gradient and scalars. RULE_NAME: a rule of timberframe/optimizer; POWERS: 1 where it
 * raises to a power. STATES: how many tensors it changes. STEP: which of the scalars is an int64, which is in `step`;
 * 9 for none. ROWS: 1 for a gradient of rows, whose numbers are keys of dtype KEY. Of the pointers those that a rule has
 * no use for may point anywhere. Where status is not 0, an earlier kernel has failed, and nothing changes. */
#include <timberframe/accelerator/language.h>
#if ROWS
#include <timberframe/accelerator/sort.h>
#endif
#include <timberframe/elementwise.h>
#if POWERS
#include <timberframe/math/power.h>
#endif

#define T TF_VALUE(DTYPE)
#define TF_INDEPENDENT
#define RULE_(name) name##_rule
#define RULE(name) RULE_(name)
#define HIGHER(a, b) ((a) < (b) ? (b) : (a))
#define TF_IS_WIDE_float64 1
#define TF_IS_WIDE(dtype) TF_IS_WIDE_(dtype)
#define TF_IS_WIDE_(dtype) TF_IS_WIDE_##dtype
#if TF_IS_WIDE(DTYPE)
#define SQRT tf_root_f64
#define ABS tf_abs_f64
#define EXP tf_exp_f64
#else
#define SQRT tf_root_f32
#define ABS tf_abs_f32
#define EXP tf_exp_f32
#endif
#if !POWERS
#define POW(x, y) (x) /* stands in rules that are not called */
#elif TF_IS_WIDE(DTYPE)
#define POW power_float64_of
#else
#define POW power_float32_of
#endif

#include <timberframe/optimizer/rules.h>

#include <timberframe/optimizer/real_rules.h>

#define TF_STATES(SPACE, prefix)                                                                                     \
  SPACE TF_STORAGE(DTYPE) *prefix##0, SPACE TF_STORAGE(DTYPE) *prefix##1, SPACE TF_STORAGE(DTYPE) *prefix##2,        \
      SPACE TF_STORAGE(DTYPE) *prefix##3
#define TF_SCALARS                                                                                                   \
  TF_GLOBAL const TF_STORAGE(DTYPE) *s0, TF_GLOBAL const TF_STORAGE(DTYPE) *s1,                                      \
      TF_GLOBAL const TF_STORAGE(DTYPE) *s2, TF_GLOBAL const TF_STORAGE(DTYPE) *s3,                                  \
      TF_GLOBAL const TF_STORAGE(DTYPE) *s4, TF_GLOBAL const TF_STORAGE(DTYPE) *s5, TF_GLOBAL const int64_t *step
#define TF_SCALAR(k) (STEP == k ? (T)(float)step[0] : TF_LOAD(DTYPE, s##k, 0))
#define TF_READ_SCALARS                                                                                              \
  const T scalars[6] = {TF_SCALAR(0), TF_SCALAR(1), TF_SCALAR(2), TF_SCALAR(3), TF_SCALAR(4), TF_SCALAR(5)}

/* One element: states from x at i to z at i. */
#define TF_APPLY(x, z, i, g)                                                                                         \
  do {                                                                                                               \
    T a0 = TF_LOAD(DTYPE, x##0, i), a1 = 0, a2 = 0, a3 = 0;                                                          \
    if (STATES > 1) a1 = TF_LOAD(DTYPE, x##1, i);                                                                    \
    if (STATES > 2) a2 = TF_LOAD(DTYPE, x##2, i);                                                                    \
    if (STATES > 3) a3 = TF_LOAD(DTYPE, x##3, i);                                                                    \
    const T *const from[4] = {&a0, &a1, &a2, &a3};                                                                   \
    T *const to[4] = {&a0, &a1, &a2, &a3};                                                                           \
    const T slope = g;                                                                                               \
    RULE(RULE_NAME)(scalars, flag, from, to, &slope, 1);                                                             \
    TF_STORE(DTYPE, z##0, i, a0);                                                                                    \
    if (STATES > 1) TF_STORE(DTYPE, z##1, i, a1);                                                                    \
    if (STATES > 2) TF_STORE(DTYPE, z##2, i, a2);                                                                    \
    if (STATES > 3) TF_STORE(DTYPE, z##3, i, a3);                                                                    \
  } while (0)

#if !ROWS
TF_KERNEL tf_update(TF_STATES(TF_GLOBAL const, x), TF_STATES(TF_GLOBAL, z), TF_SCALARS,
                    TF_GLOBAL const TF_STORAGE(DTYPE) *gradient, TF_GLOBAL const int64_t *status, int64_t flag,
                    tf_index count) {
  TF_READ_SCALARS;
  if (status[0] != 0) return;
  TF_EACH(i, count) TF_APPLY(x, z, i, TF_LOAD(DTYPE, gradient, i));
}

#else

TF_KERNEL tf_copy_states(TF_STATES(TF_GLOBAL const, x), TF_STATES(TF_GLOBAL, z), tf_index count) {
  TF_EACH(i, count) {
    z0[i] = x0[i];
    if (STATES > 1) z1[i] = x1[i];
    if (STATES > 2) z2[i] = x2[i];
    if (STATES > 3) z3[i] = x3[i];
  }
}

/* Side `side` of the workspace holds the rows that `count` rows of the gradient belong to, sorted, and which these are.
 * Several of one row are applied in their order. */
TF_KERNEL tf_update_rows(TF_STATES(TF_GLOBAL, z), TF_SCALARS, TF_GLOBAL const TF_STORAGE(DTYPE) *gradient,
                         TF_GLOBAL uint8_t *workspace, TF_GLOBAL const int64_t *status, int64_t flag, tf_index count,
                         tf_index inner, tf_index side) {
  TF_GLOBAL const tf_key *keys = TF_KEYS(workspace, side, count);
  TF_GLOBAL const tf_index *positions = TF_POSITIONS(workspace, side, count);
  TF_READ_SCALARS;
  if (status[0] != 0) return;
  TF_EACH(i, count * inner) {
    const tf_index first = i / inner, column = i - first * inner;
    const tf_key row = keys[first];
    const tf_index at = (tf_index)row * inner + column;
    if (first && keys[first - 1] == row) continue;
    for (tf_index j = first; j < count && keys[j] == row; j++) {
      TF_APPLY(z, z, at, TF_LOAD(DTYPE, gradient, positions[j] * inner + column));
    }
  }
}
#endif
