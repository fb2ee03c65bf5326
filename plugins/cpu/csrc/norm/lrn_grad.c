/* LRNGrad. With N the base of the power at each channel, dx = dy N^-beta - 2 alpha beta x (sum over the channels within
 * the radius of dy y / N). */
#include <math.h>

#include "common/half.h"
#include "common/table.h"

#define SERIAL_VALUES 4096 /* values worth a thread: each takes a power */

typedef struct lrn_job {
  const void *dy, *x, *y;
  void *dx;
  float *shares; /* for each row: dy y / N by channel, then dy N^-beta */
  const int64_t *parameters;
  int64_t channels;
} lrn_job;

static inline int64_t first_channel(int64_t c, int64_t radius) { return c < radius ? 0 : c - radius; }
static inline int64_t last_channel(int64_t c, int64_t radius, int64_t channels) {
  return channels - c > radius ? c + radius : channels - 1;
}

/* parameters: depth radius; bias, alpha and beta as doubles. Rows are the channels of one position. */
#define LRN_GRAD(NAME, S, LOAD, STORE)                                                                                \
  static void lrn_grad_rows_##NAME(void *argument, int64_t begin, int64_t end) {                                      \
    const lrn_job *job = argument;                                                                                    \
    int64_t channels = job->channels, radius = job->parameters[0];                                                    \
    float bias = (float)tf_double(job->parameters[1]), alpha = (float)tf_double(job->parameters[2]);                  \
    float beta = (float)tf_double(job->parameters[3]), factor = -2 * alpha * beta;                                    \
    for (int64_t row = begin; row < end; row++) {                                                                     \
      const S *dy = (const S *)job->dy + row * channels, *x = (const S *)job->x + row * channels;                     \
      const S *y = (const S *)job->y + row * channels;                                                                \
      S *dx = (S *)job->dx + row * channels;                                                                          \
      float *shares = job->shares + row * 2 * channels, *direct = shares + channels;                                  \
      for (int64_t c = 0; c < channels; c++) {                                                                        \
        float sum = 0, gradient = LOAD(dy[c]);                                                                        \
        int64_t last = last_channel(c, radius, channels);                                                             \
        for (int64_t i = first_channel(c, radius); i <= last; i++) sum += LOAD(x[i]) * LOAD(x[i]);                    \
        float base = bias + alpha * sum;                                                                              \
        shares[c] = gradient * LOAD(y[c]) / base;                                                                     \
        direct[c] = gradient * powf(base, -beta);                                                                     \
      }                                                                                                               \
      for (int64_t c = 0; c < channels; c++) {                                                                        \
        float sum = 0;                                                                                                \
        int64_t last = last_channel(c, radius, channels);                                                             \
        for (int64_t i = first_channel(c, radius); i <= last; i++) sum += shares[i];                                  \
        dx[c] = STORE(direct[c] + factor * LOAD(x[c]) * sum);                                                         \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t lrn_grad_##NAME(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,      \
                                 const int64_t *parameters) {                                                         \
    if (!outputs[0]->size) return TF_OK;                                                                              \
    lrn_job job = {inputs[0]->data, inputs[1]->data, inputs[2]->data, outputs[0]->data, outputs[1]->data, parameters, \
                   outputs[0]->shape[3]};                                                                             \
    context->parallel_for(context, outputs[0]->size / job.channels, 1 + SERIAL_VALUES / job.channels,                 \
                          lrn_grad_rows_##NAME, &job);                                                                \
    return TF_OK;                                                                                                     \
  }
#define SAME(x) (x)
LRN_GRAD(float32, float, SAME, SAME)
LRN_GRAD(float16, tf_float16, tf_float32_from_float16, tf_float16_from_float32)
LRN_GRAD(bfloat16, tf_bfloat16, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

TF_TABLE(norm_lrn_grad) = {
  TF_ENTRY(lrn_grad_float32), TF_ENTRY(lrn_grad_float16), TF_ENTRY(lrn_grad_bfloat16), TF_END,
};
