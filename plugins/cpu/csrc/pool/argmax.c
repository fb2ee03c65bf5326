/* MaxPoolWithArgmax and its gradient, of NHWC tensors. */
#include "pool/maxima.h"

/* parameters: a pool_shape, then whether an index is counted in the whole batch instead of its image. */
typedef struct argmax_job {
  const pool_shape *shape;
  const void *input;
  const int32_t *taps;
  void *values, *arguments; /* arguments are int64 where `wide`, else int32 */
  int64_t wide, whole_batch;
} argmax_job;

typedef struct scatter_job {
  const pool_shape *shape;
  const void *gradient, *indices;
  void *sums, *result; /* the same but for 16-bit floats */
  int64_t wide, whole_batch;
  int64_t bad, bad_image; /* an index outside the tensor, and the image that it was given for; bad_image -1 if none */
} scatter_job;

#define BATCH_PARAMETER (sizeof(pool_shape) / sizeof(int64_t))

/* Values and indices of the maxima, whose taps are known. */
#define TAKE(NAME, S)                                                                                         \
  static void take_##NAME(void *argument, int64_t begin, int64_t end) {                                       \
    const argmax_job *job = argument;                                                                         \
    const pool_shape *s = job->shape;                                                                         \
    int64_t channels = s->channels, size = s->height * s->width * channels;                                   \
    for (int64_t row = begin; row < end; row++) {                                                             \
      int64_t image = row / s->out_height, top = row % s->out_height * s->stride_y - s->pad_top;              \
      for (int64_t x = 0; x < s->out_width; x++) {                                                            \
        int64_t left = x * s->stride_x - s->pad_left, at = (row * s->out_width + x) * channels;               \
        for (int64_t c = 0; c < channels; c++) {                                                              \
          int64_t tap = job->taps[at + c], i = top + tap / s->kernel_width, j = left + tap % s->kernel_width; \
          int64_t index = (i * s->width + j) * channels + c;                                                  \
          ((S *)job->values)[at + c] = ((const S *)job->input)[image * size + index];                         \
          index += job->whole_batch * image * size;                                                           \
          if (job->wide) ((int64_t *)job->arguments)[at + c] = index;                                         \
          else ((int32_t *)job->arguments)[at + c] = (int32_t)index;                                          \
        }                                                                                                     \
      }                                                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  static int32_t max_pool_argmax_##NAME(tf_context *context, const tf_tensor *const *inputs,                  \
                                        tf_tensor *const *outputs, const int64_t *parameters) {               \
    const pool_shape *s = (const pool_shape *)parameters;                                                     \
    if (!outputs[0]->size) return TF_OK;                                                                      \
    maxima_job maxima = {s, inputs[0]->data, outputs[2]->data};                                               \
    argmax_job job = {.shape = s, .input = inputs[0]->data, .taps = maxima.taps, .values = outputs[0]->data,  \
                      .arguments = outputs[1]->data, .wide = outputs[1]->dtype == TF_INT64,                   \
                      .whole_batch = parameters[BATCH_PARAMETER]};                                            \
    run_rows(context, s->batch * s->out_height, row_values(s), maxima_##NAME, &maxima);                       \
    run_rows(context, s->batch * s->out_height, s->out_width * s->channels, take_##NAME, &job);               \
    return TF_OK;                                                                                             \
  }

/* Adds the gradients of images to the elements that the indices name; units are images, or the one batch. T is the type of the sums, which are
 * in the workspace where it is not S. Reason 1: index {0}, image {1}, {2} indices. */
#define SCATTER(NAME, S, T, LOAD, STORE)                                                                       \
  static void scatter_##NAME(void *argument, int64_t begin, int64_t end) {                                     \
    scatter_job *job = argument;                                                                               \
    const pool_shape *s = job->shape;                                                                          \
    int64_t images = job->whole_batch ? s->batch : 1, size = images * s->height * s->width * s->channels;      \
    int64_t each = s->out_height * s->out_width * s->channels;                                                 \
    for (int64_t unit = begin; unit < end; unit++) {                                                           \
      T *sums = (T *)job->sums + unit * size;                                                                  \
      memset(sums, 0, (size_t)size * sizeof *sums);                                                            \
      for (int64_t at = unit * images * each; at < (unit + 1) * images * each; at++) {                         \
        int64_t index = job->wide ? ((const int64_t *)job->indices)[at] : ((const int32_t *)job->indices)[at]; \
        if (index >= 0 && index < size) {                                                                      \
          sums[index] = (T)(sums[index] + LOAD(((const S *)job->gradient)[at]));                               \
        } else {                                                                                               \
          report(job, index, at / each);                                                                       \
        }                                                                                                      \
      }                                                                                                        \
      if (job->sums == job->result) continue;                                                                  \
      S *out = (S *)job->result + unit * size;                                                                 \
      for (int64_t k = 0; k < size; k++) out[k] = (S)STORE(sums[k]);                                           \
    }                                                                                                          \
  }                                                                                                            \
  static int32_t max_pool_grad_argmax_##NAME(tf_context *context, const tf_tensor *const *inputs,              \
                                             tf_tensor *const *outputs, const int64_t *parameters) {           \
    const pool_shape *s = (const pool_shape *)parameters;                                                      \
    if (!outputs[0]->size) return TF_OK;                                                                       \
    scatter_job job = {.shape = s, .gradient = inputs[1]->data, .indices = inputs[2]->data,                    \
                       .sums = outputs[sizeof(S) == sizeof(T) ? 0 : 1]->data, .result = outputs[0]->data,      \
                       .wide = inputs[2]->dtype == TF_INT64, .whole_batch = parameters[BATCH_PARAMETER],       \
                       .bad_image = -1};                                                                       \
    int64_t units = job.whole_batch ? 1 : s->batch, values = outputs[0]->size / units;                         \
    context->parallel_for(context, units, 1 + SERIAL_VALUES / values, scatter_##NAME, &job);                   \
    if (job.bad_image < 0) return TF_OK;                                                                       \
    return tf_fail(context, TF_INVALID_ARGUMENT, 1, job.bad, job.bad_image, values, 0);                        \
  }

static void report(scatter_job *job, int64_t index, int64_t image) {
  int64_t none = -1;
  int first = __atomic_compare_exchange_n(&job->bad_image, &none, image, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (first) job->bad = index;
}

#define BOTH(NAME, S, T, LOAD, STORE) \
  TAKE(NAME, S)                       \
  SCATTER(NAME, S, T, LOAD, STORE)

/* Sums of integers wrap, which unsigned arithmetic does. */
BOTH(int8, uint8_t, uint8_t, SAME, SAME)
BOTH(int16, uint16_t, uint16_t, SAME, SAME)
BOTH(int32, uint32_t, uint32_t, SAME, SAME)
BOTH(int64, uint64_t, uint64_t, SAME, SAME)
BOTH(uint8, uint8_t, uint8_t, SAME, SAME)
BOTH(uint16, uint16_t, uint16_t, SAME, SAME)
BOTH(uint32, uint32_t, uint32_t, SAME, SAME)
BOTH(uint64, uint64_t, uint64_t, SAME, SAME)
BOTH(float32, float, float, SAME, SAME)
BOTH(float64, double, double, SAME, SAME)
BOTH(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
BOTH(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

#define ENTRIES(NAME) TF_ENTRY(max_pool_argmax_##NAME), TF_ENTRY(max_pool_grad_argmax_##NAME)
TF_TABLE(pool_argmax) = {
  ENTRIES(int8), ENTRIES(int16), ENTRIES(int32), ENTRIES(int64), ENTRIES(uint8), ENTRIES(uint16), ENTRIES(uint32),
  ENTRIES(uint64), ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), TF_END,
};
