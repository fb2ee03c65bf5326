/* LRN, and cross entropy after a softmax with its gradient. */
#include <math.h>

#include "common/half.h"
#include "common/table.h"
#include <timberframe/math/precision_float32.h>

#include <timberframe/math/exponential.h>

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define SERIAL_VALUES 4096 /* values worth a thread: each takes an exponential or a power */

typedef struct row_job {
  const void *x, *labels;
  void *loss, *gradient;
  const int64_t *parameters;
  int64_t classes;
  int wide; /* labels are int64 */
} row_job;

/* parameters: depth radius; bias, alpha and beta as doubles. Rows are the channels of one position. */
#define LRN(NAME, S, LOAD, STORE)                                                                              \
  static void lrn_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                    \
    const row_job *job = argument;                                                                             \
    int64_t channels = job->classes, radius = job->parameters[0];                                              \
    float bias = (float)tf_double(job->parameters[1]), alpha = (float)tf_double(job->parameters[2]);           \
    float power = -(float)tf_double(job->parameters[3]);                                                       \
    for (int64_t row = begin; row < end; row++) {                                                              \
      const S *x = (const S *)job->x + row * channels;                                                         \
      S *y = (S *)job->gradient + row * channels;                                                              \
      for (int64_t c = 0; c < channels; c++) {                                                                 \
        int64_t first = c < radius ? 0 : c - radius, last = channels - c > radius ? c + radius : channels - 1; \
        float sum = 0;                                                                                         \
        for (int64_t i = first; i <= last; i++) sum += LOAD(x[i]) * LOAD(x[i]);                                \
        y[c] = STORE(LOAD(x[c]) * powf(bias + alpha * sum, power));                                            \
      }                                                                                                        \
    }                                                                                                          \
  }                                                                                                            \
  static int32_t lrn_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,    \
                            const int64_t *parameters) {                                                       \
    row_job job = {.x = inputs[0]->data, .gradient = outputs[0]->data, .parameters = parameters};              \
    job.classes = outputs[0]->shape[3];                                                                        \
    if (!outputs[0]->size) return TF_OK;                                                                       \
    int64_t rows = outputs[0]->size / job.classes;                                                             \
    context->parallel_for(context, rows, 1 + SERIAL_VALUES / job.classes, lrn_rows_##NAME, &job);              \
    return TF_OK;                                                                                              \
  }

/* Sums and maxima of a row go into LANES partial results, so that the loops become vector code; the values of CHUNK
 * classes at a time are held in the computing type. */
#define LANES 16
#define CHUNK 256
#define INLINE static inline __attribute__((always_inline))

/* parameters: strides of features by row and class, then of labels; 0 where a dimension is broadcast. */
#define CROSS_ENTROPY(NAME, S, T, LOAD, STORE, EXP, LOG)                                                             \
  INLINE T add_##NAME(const T *values, int64_t count) {                                                              \
    T sums[LANES] = {0};                                                                                             \
    int64_t i = 0;                                                                                                   \
    for (; i + LANES <= count; i += LANES) {                                                                         \
      for (int k = 0; k < LANES; k++) sums[k] += values[i + k];                                                      \
    }                                                                                                                \
    for (; i < count; i++) sums[i % LANES] += values[i];                                                             \
    for (int width = LANES / 2; width; width /= 2) {                                                                 \
      for (int k = 0; k < width; k++) sums[k] += sums[k + width];                                                    \
    }                                                                                                                \
    return sums[0];                                                                                                  \
  }                                                                                                                  \
  INLINE T largest_##NAME(const S *x, int64_t step, int64_t classes) {                                               \
    T tops[LANES];                                                                                                   \
    int64_t c = 0;                                                                                                   \
    for (int k = 0; k < LANES; k++) tops[k] = -(T)INFINITY;                                                          \
    for (; c + LANES <= classes; c += LANES) {                                                                       \
      for (int k = 0; k < LANES; k++) {                                                                              \
        T v = LOAD(x[(c + k) * step]);                                                                               \
        tops[k] = v > tops[k] ? v : tops[k];                                                                         \
      }                                                                                                              \
    }                                                                                                                \
    for (; c < classes; c++) tops[0] = LOAD(x[c * step]) > tops[0] ? LOAD(x[c * step]) : tops[0];                    \
    for (int k = 1; k < LANES; k++) tops[0] = tops[k] > tops[0] ? tops[k] : tops[0];                                 \
    return tops[0];                                                                                                  \
  }                                                                                                                  \
  INLINE T log_sum_##NAME(const S *x, int64_t step, int64_t classes, T top) {                                        \
    T sum = 0, values[CHUNK];                                                                                        \
    for (int64_t c = 0; c < classes; c += CHUNK) {                                                                   \
      int64_t count = MINIMUM(classes - c, CHUNK);                                                                   \
      for (int64_t i = 0; i < count; i++) values[i] = EXP(LOAD(x[(c + i) * step]) - top);                            \
      sum += add_##NAME(values, count);                                                                              \
    }                                                                                                                \
    return LOG(sum);                                                                                                 \
  }                                                                                                                  \
  INLINE void dense_row_##NAME(const S *x, int64_t step, const S *labels, int64_t label_step, S *gradient, S *loss,  \
                               int64_t classes) {                                                                    \
    T top = largest_##NAME(x, step, classes), total = log_sum_##NAME(x, step, classes, top), sum = 0, losses[CHUNK]; \
    for (int64_t c = 0; c < classes; c += CHUNK) {                                                                   \
      int64_t count = MINIMUM(classes - c, CHUNK);                                                                   \
      for (int64_t i = 0; i < count; i++) {                                                                          \
        T log = LOAD(x[(c + i) * step]) - top - total, label = LOAD(labels[(c + i) * label_step]);                   \
        losses[i] = label != 0 ? log * label : 0;                                                                    \
        gradient[c + i] = STORE(EXP(log) - label);                                                                   \
      }                                                                                                              \
      sum += add_##NAME(losses, count);                                                                              \
    }                                                                                                                \
    *loss = STORE(-sum);                                                                                             \
  }                                                                                                                  \
  static void dense_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                        \
    const row_job *job = argument;                                                                                   \
    const int64_t *p = job->parameters;                                                                              \
    for (int64_t row = begin; row < end; row++) {                                                                    \
      const S *x = (const S *)job->x + row * p[0], *labels = (const S *)job->labels + row * p[2];                    \
      S *gradient = (S *)job->gradient + row * job->classes, *loss = (S *)job->loss + row;                           \
      if (p[1] == 1 && p[3] == 1) dense_row_##NAME(x, 1, labels, 1, gradient, loss, job->classes);                   \
      else dense_row_##NAME(x, p[1], labels, p[3], gradient, loss, job->classes);                                    \
    }                                                                                                                \
  }                                                                                                                  \
  static void sparse_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                       \
    const row_job *job = argument;                                                                                   \
    for (int64_t row = begin; row < end; row++) {                                                                    \
      int64_t label = job->wide ? ((const int64_t *)job->labels)[row] : ((const int32_t *)job->labels)[row];         \
      const S *x = (const S *)job->x + row * job->classes;                                                           \
      S *restrict gradient = (S *)job->gradient + row * job->classes;                                                \
      T top = largest_##NAME(x, 1, job->classes), total = log_sum_##NAME(x, 1, job->classes, top);                   \
      for (int64_t c = 0; c < job->classes; c++) gradient[c] = STORE(EXP(LOAD(x[c]) - top - total));                 \
      T log = LOAD(x[label]) - top - total;                                                                          \
      gradient[label] = STORE(EXP(log) - 1);                                                                         \
      ((S *)job->loss)[row] = STORE(-log);                                                                           \
    }                                                                                                                \
  }                                                                                                                  \
  static int32_t cross_entropy_##NAME(tf_context *context, const tf_tensor *const *inputs,                           \
                                      tf_tensor *const *outputs, const int64_t *parameters) {                        \
    row_job job = {inputs[0]->data, inputs[1]->data, outputs[0]->data, outputs[1]->data, parameters,                 \
                   outputs[1]->shape[1], 0};                                                                         \
    if (!outputs[1]->size) return clear_losses(outputs[0], sizeof(S));                                               \
    context->parallel_for(context, outputs[0]->size, 1 + SERIAL_VALUES / job.classes, dense_rows_##NAME, &job);      \
    return TF_OK;                                                                                                    \
  }                                                                                                                  \
  static int32_t sparse_cross_entropy_##NAME(tf_context *context, const tf_tensor *const *inputs,                    \
                                             tf_tensor *const *outputs, const int64_t *parameters) {                 \
    row_job job = {inputs[0]->data, inputs[1]->data, outputs[0]->data, outputs[1]->data, parameters,                 \
                   outputs[1]->shape[1], inputs[1]->dtype == TF_INT64};                                              \
    if (check_labels(context, &job, outputs[0]->size)) return TF_INVALID_ARGUMENT;                                   \
    if (!outputs[1]->size) return TF_OK;                                                                             \
    context->parallel_for(context, outputs[0]->size, 1 + SERIAL_VALUES / job.classes, sparse_rows_##NAME, &job);     \
    return TF_OK;                                                                                                    \
  }

/* Rows without classes have no loss. */
static int32_t clear_losses(tf_tensor *losses, size_t item) {
  char *bytes = losses->data;
  for (size_t i = 0; i < (size_t)losses->size * item; i++) bytes[i] = 0;
  return TF_OK;
}

/* Reason 1: label {0} of row {1} is not below {2}. */
static int32_t check_labels(tf_context *context, const row_job *job, int64_t rows) {
  for (int64_t row = 0; row < rows; row++) {
    int64_t label = job->wide ? ((const int64_t *)job->labels)[row] : ((const int32_t *)job->labels)[row];
    if (label >= 0 && label < job->classes) continue;
    return tf_fail(context, TF_INVALID_ARGUMENT, 1, label, row, job->classes, 0);
  }
  return TF_OK;
}

#define SAME(x) (x)
LRN(float32, float, SAME, SAME)
LRN(float16, tf_float16, tf_float32_from_float16, tf_float16_from_float32)
LRN(bfloat16, tf_bfloat16, tf_float32_from_bfloat16, tf_bfloat16_from_float32)
CROSS_ENTROPY(float32, float, float, SAME, SAME, tf_exp_f32, logf)
CROSS_ENTROPY(float64, double, double, SAME, SAME, exp, log)
CROSS_ENTROPY(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32, tf_exp_f32, logf)
CROSS_ENTROPY(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32, tf_exp_f32, logf)

TF_TABLE(norm_rows) = {
  TF_ENTRY(lrn_float32), TF_ENTRY(lrn_float16), TF_ENTRY(lrn_bfloat16), TF_ENTRY(cross_entropy_float32),
  TF_ENTRY(cross_entropy_float64), TF_ENTRY(cross_entropy_float16), TF_ENTRY(cross_entropy_bfloat16),
  TF_ENTRY(sparse_cross_entropy_float32), TF_ENTRY(sparse_cross_entropy_float64),
  TF_ENTRY(sparse_cross_entropy_float16), TF_ENTRY(sparse_cross_entropy_bfloat16), TF_END,
};
