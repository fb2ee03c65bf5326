/* Kernels that apply one function to the elements of two tensors of one shape. */
#ifndef TIMBERFRAME_CPU_UNARY_PAIR_H
#define TIMBERFRAME_CPU_UNARY_PAIR_H

#include "map.h"

typedef struct tf_pair {
  const char *a, *b;
  char *out;
} tf_pair;

static inline int32_t tf_run_pair(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                  tf_range *body) {
  tf_pair pair = {inputs[0]->data, inputs[1]->data, outputs[0]->data};
  int64_t count = outputs[0]->size;
  if (count <= TF_MAP_GRAIN) {
    body(&pair, 0, count);
  } else {
    context->parallel_for(context, count, TF_MAP_PART, body, &pair);
  }
  return TF_OK;
}

/* The kernel <name>_<dtype>; load and store take an element to and from the type that f computes in. */
#define TF_PAIR(name, dtype, type, compute, load, store, f)                                                        \
  static void name##_##dtype##_body(void *argument, int64_t begin, int64_t end) {                                  \
    const tf_pair *pair = argument;                                                                                \
    const type *a = (const type *)(const void *)pair->a, *b = (const type *)(const void *)pair->b;                 \
    type *out = (type *)(void *)pair->out;                                                                         \
    TF_INDEPENDENT for (int64_t i = begin; i < end; i++) {                                                         \
      compute x = load(a[i]), y = load(b[i]);                                                                      \
      out[i] = store(f);                                                                                           \
    }                                                                                                              \
  }                                                                                                                \
  static int32_t name##_##dtype(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                                const int64_t *parameters) {                                                       \
    (void)parameters;                                                                                              \
    return tf_run_pair(context, inputs, outputs, name##_##dtype##_body);                                           \
  }

#endif
