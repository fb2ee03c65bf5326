/* Blocks of fused chains reduced to one element each, and these to results: see runner/blocks.c. */
#include <timberframe/fold.h>

#include "common/table.h"

#define FOLD(how, dtype, T)                                                                                     \
  static int32_t fold_##how##_##dtype(tf_context *context, const tf_tensor *const *inputs,                      \
                                      tf_tensor *const *outputs, const int64_t *parameters) {                   \
    (void)context, (void)parameters;                                                                            \
    *(T *)outputs[0]->data = tf_fold_##how##_##dtype(inputs[0]->data, inputs[0]->size);                         \
    return TF_OK;                                                                                               \
  }
#define FOLDS(dtype, T)    \
  FOLD(sum, dtype, T)      \
  FOLD(product, dtype, T)  \
  FOLD(maximum, dtype, T)  \
  FOLD(minimum, dtype, T)

/* parameters: the number of elements whose sums the input has. */
#define FOLD_MEAN(dtype, T)                                                                                       \
  static int32_t fold_mean_##dtype(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                   const int64_t *parameters) {                                                   \
    (void)context;                                                                                                \
    *(T *)outputs[0]->data = tf_fold_sum_##dtype(inputs[0]->data, inputs[0]->size) / (T)parameters[0];            \
    return TF_OK;                                                                                                 \
  }
FOLDS(float32, float)
FOLDS(float64, double)
FOLDS(int32, int32_t)
FOLDS(int64, int64_t)
FOLD_MEAN(float32, float)
FOLD_MEAN(float64, double)

#define ALL(dtype)                                               \
  TF_ENTRY(fold_sum_##dtype), TF_ENTRY(fold_product_##dtype),    \
    TF_ENTRY(fold_maximum_##dtype), TF_ENTRY(fold_minimum_##dtype)
TF_TABLE(reduce_fold) = {
  ALL(float32), ALL(float64), ALL(int32), ALL(int64), TF_ENTRY(fold_mean_float32), TF_ENTRY(fold_mean_float64), TF_END,
};
