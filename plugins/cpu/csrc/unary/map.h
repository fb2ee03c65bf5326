/* Kernels that apply one function to every element.
 *
 * A range function works on `count` elements that lie one after the other; `out` may be `in`. Around it a kernel is
 * made that splits the tensor among threads. float16 and bfloat16 go through the float32 range, a block at a time. */
#ifndef TIMBERFRAME_CPU_UNARY_MAP_H
#define TIMBERFRAME_CPU_UNARY_MAP_H

#include "half.h"
#include "lanes.h"
#include "table.h"

#ifndef TF_MAP_GRAIN
#define TF_MAP_GRAIN 16384 /* elements below which threads cost more than they bring; less for costly functions */
#endif
#define TF_MAP_PART (TF_MAP_GRAIN / 4) /* of elements that threads share, so that each has about as many */
#define TF_MAP_BLOCK 512   /* float32 elements that a block on the stack holds */

typedef struct tf_map {
  const char *in;
  char *out;
  const int64_t *parameters;
} tf_map;

static inline int32_t tf_run_map(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                                 const int64_t *parameters, tf_range *body) {
  tf_map map = {inputs[0]->data, outputs[0]->data, parameters};
  int64_t count = inputs[0]->size;
  if (count <= TF_MAP_GRAIN) {
    body(&map, 0, count);
  } else {
    context->parallel_for(context, count, TF_MAP_PART, body, &map);
  }
  return TF_OK;
}

/* The kernel `name` from a range function of elements `input` to elements `output`. */
#define TF_MAP_KERNEL(name, input, output, range)                                                                  \
  static void name##_body(void *argument, int64_t begin, int64_t end) {                                            \
    const tf_map *map = argument;                                                                                  \
    range((const input *)(const void *)map->in + begin, (output *)(void *)map->out + begin, end - begin,           \
          map->parameters);                                                                                        \
  }                                                                                                                \
  static int32_t name(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,              \
                      const int64_t *parameters) {                                                                 \
    return tf_run_map(context, inputs, outputs, parameters, name##_body);                                          \
  }

/* A range function of a 16-bit float type from the one of float32. */
#define TF_HALF_RANGE(name, type, kind, range)                                                                     \
  static void name(const type *in, type *out, int64_t count, const int64_t *parameters) {                          \
    float block[TF_MAP_BLOCK];                                                                                     \
    for (int64_t i = 0; i < count; i += TF_MAP_BLOCK) {                                                            \
      int64_t n = count - i < TF_MAP_BLOCK ? count - i : TF_MAP_BLOCK;                                             \
      tf_float32_from_##kind##_n(block, in + i, n);                                                                \
      range(block, block, n, parameters);                                                                          \
      tf_##kind##_from_float32_n(out + i, block, n);                                                               \
    }                                                                                                              \
  }

/* Kernels <name>_float32, <name>_float16 and <name>_bfloat16 from the range function <name>_range of float32. */
#define TF_FLOAT_KERNELS(name)                                                                                     \
  TF_HALF_RANGE(name##_range_float16, tf_float16, float16, name##_range)                                           \
  TF_HALF_RANGE(name##_range_bfloat16, tf_bfloat16, bfloat16, name##_range)                                        \
  TF_MAP_KERNEL(name##_float32, float, float, name##_range)                                                        \
  TF_MAP_KERNEL(name##_float16, tf_float16, tf_float16, name##_range_float16)                                      \
  TF_MAP_KERNEL(name##_bfloat16, tf_bfloat16, tf_bfloat16, name##_range_bfloat16)

#define TF_FLOAT_ENTRIES(name) TF_ENTRY(name##_float32), TF_ENTRY(name##_float16), TF_ENTRY(name##_bfloat16),

/* The range function `name` of the function f(x): whole vectors, then the rest in one vector that is partly filled. */
#define TF_RANGE(name, type, lanes, load, store, f)                                                                \
  static void name(const type *in, type *out, int64_t count, const int64_t *parameters) {                          \
    (void)parameters;                                                                                              \
    int64_t i = 0;                                                                                                 \
    for (; i + lanes <= count; i += lanes) {                                                                       \
      TF_INDEPENDENT for (int j = 0; j < lanes; j++) out[i + j] = f(in[i + j]);                                    \
    }                                                                                                              \
    if (i < count) {                                                                                               \
      type rest[lanes];                                                                                            \
      load(rest, in + i, count - i);                                                                               \
      for (int j = 0; j < lanes; j++) rest[j] = f(rest[j]);                                                        \
      store(out + i, rest, count - i);                                                                             \
    }                                                                                                              \
  }

#define TF_RANGE32(name, f) TF_RANGE(name, float, TF_LANES32, tf_load_lanes32, tf_store_lanes32, f)
#define TF_RANGE64(name, f) TF_RANGE(name, double, TF_LANES64, tf_load_lanes64, tf_store_lanes64, f)

#endif
