/* A block of elements reduced to one, in C: the same order of operations whatever the instruction set and whatever
 * compiles it, so that generated code and a device's own kernels agree to the bit.
 *
 * tf_fold_<how>_<dtype>(x, count), count >= 1, for sum, product, maximum and minimum. Integers wrap. */
#ifndef TIMBERFRAME_FOLD_H
#define TIMBERFRAME_FOLD_H

#include <stdint.h>

enum { TF_FOLD_LANES = 64 }; /* partial results side by side, which are then joined in a tree */

#define TF_FOLD_SUM(a, b) ((a) + (b))
#define TF_FOLD_PRODUCT(a, b) ((a) * (b))
#define TF_FOLD_MAXIMUM(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a)) /* NaN wins */
#define TF_FOLD_MINIMUM(a, b) ((((b) < (a)) | ((b) != (b))) ? (b) : (a))

/* V: the type in which elements are combined. */
#define TF_FOLD(how, COMBINE, dtype, T, V)                                                                  \
  static inline T tf_fold_##how##_##dtype(const T *x, int64_t count) {                                      \
    V lanes[TF_FOLD_LANES];                                                                                 \
    const int64_t first = count < TF_FOLD_LANES ? count : TF_FOLD_LANES;                                    \
    for (int64_t k = 0; k < first; k++) lanes[k] = (V)x[k];                                                 \
    int64_t i = first;                                                                                      \
    for (; i + TF_FOLD_LANES <= count; i += TF_FOLD_LANES) {                                                \
      for (int64_t k = 0; k < TF_FOLD_LANES; k++) lanes[k] = COMBINE(lanes[k], (V)x[i + k]);                \
    }                                                                                                       \
    for (int64_t k = 0; i + k < count; k++) lanes[k] = COMBINE(lanes[k], (V)x[i + k]);                      \
    for (int64_t parts = first; parts > 1;) {                                                               \
      const int64_t kept = (parts + 1) / 2;                                                                 \
      for (int64_t k = 0; k < parts - kept; k++) lanes[k] = COMBINE(lanes[k], lanes[k + kept]);             \
      parts = kept;                                                                                         \
    }                                                                                                       \
    return (T)lanes[0];                                                                                     \
  }
#define TF_FOLDS(dtype, T, U)                            \
  TF_FOLD(sum, TF_FOLD_SUM, dtype, T, U)                 \
  TF_FOLD(product, TF_FOLD_PRODUCT, dtype, T, U)         \
  TF_FOLD(maximum, TF_FOLD_MAXIMUM, dtype, T, T)         \
  TF_FOLD(minimum, TF_FOLD_MINIMUM, dtype, T, T)
TF_FOLDS(float32, float, float)
TF_FOLDS(float64, double, double)
TF_FOLDS(int32, int32_t, uint32_t)
TF_FOLDS(int64, int64_t, uint64_t)

#endif
