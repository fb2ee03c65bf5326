/* The shape that two shapes broadcast to. */
#include "common/table.h"

#define BROADCAST_ARGS(type, T)                                                                                      \
  static int32_t broadcast_args_##type(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs, \
                                       const int64_t *parameters) {                                                  \
    (void)parameters;                                                                                                \
    const T *x = inputs[0]->data, *y = inputs[1]->data;                                                              \
    T *z = outputs[0]->data;                                                                                         \
    const int64_t rank = outputs[0]->size, left = rank - inputs[0]->size, above = rank - inputs[1]->size;            \
    for (int64_t d = 0; d < rank; d++) {                                                                             \
      const T a = d < left ? 1 : x[d - left], b = d < above ? 1 : y[d - above];                                      \
      if (a != b && a != 1 && b != 1) return tf_fail(context, TF_INVALID_ARGUMENT, 1, a, b, rank - 1 - d, 0);        \
      z[d] = a == 1 ? b : a;                                                                                         \
    }                                                                                                                \
    return TF_OK;                                                                                                    \
  }
BROADCAST_ARGS(int32, int32_t)
BROADCAST_ARGS(int64, int64_t)

TF_TABLE(binary_broadcast_args) = {TF_ENTRY(broadcast_args_int32), TF_ENTRY(broadcast_args_int64), TF_END};
