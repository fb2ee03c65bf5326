/* FusedBatchNormGrad: tensors seen as [outer, channels, inner], inner being 1 where channels come last.
 *
 * With the deviations d = x - mean and the factor f = 1 / sqrt(variance + epsilon), the gradients by offset and
 * scale are the sums of dy and of f d dy; that by x is scale f dy, less in training its means over the batch: the
 * gradient by the batch's own mean and variance. */
#include <math.h>

#include "common/half.h"
#include "common/table.h"
#include "norm/sums.h"

/* The parameters, in this order. The workspace holds float64 sums [MAXIMUM_BLOCKS, 2, channels], float64 means
 * [channels], then three float32 vectors of channels. */
typedef struct grad_shape {
  int64_t outer, channels, inner, training;
  double epsilon;
} grad_shape;

/* The result is factors * (dy - shifts - slopes * (x - centers)). */
typedef struct grad_job {
  const grad_shape *shape;
  const void *dy, *x;
  void *dx;
  const float *centers;
  float *factors, *shifts, *slopes;
} grad_job;

typedef struct grad_passes {
  tf_range *sum_blocks, *sum_channels, *combine;
} grad_passes;

#define GRAD(NAME, S, LOAD, STORE)                                                                                    \
  CHANNEL_SUMS(NAME, S, LOAD, 1)                                                                                      \
  static void combine_##NAME(void *argument, int64_t begin, int64_t end) {                                            \
    const grad_job *job = argument;                                                                                   \
    int64_t channels = job->shape->channels, inner = job->shape->inner, width = inner == 1 ? channels : inner;        \
    const float *restrict centers = job->centers, *restrict factors = job->factors;                                   \
    const float *restrict shifts = job->shifts, *restrict slopes = job->slopes;                                       \
    for (int64_t row = begin; row < end; row++) {                                                                     \
      const S *restrict dy = (const S *)job->dy + row * width, *restrict x = (const S *)job->x + row * width;         \
      S *restrict dx = (S *)job->dx + row * width;                                                                    \
      if (inner == 1) {                                                                                               \
        for (int64_t c = 0; c < width; c++) {                                                                         \
          dx[c] = STORE((LOAD(dy[c]) - shifts[c] - slopes[c] * (LOAD(x[c]) - centers[c])) * factors[c]);              \
        }                                                                                                             \
      } else {                                                                                                        \
        int64_t c = row % channels;                                                                                   \
        float center = centers[c], factor = factors[c], shift = shifts[c], slope = slopes[c];                         \
        for (int64_t i = 0; i < width; i++) {                                                                         \
          dx[i] = STORE((LOAD(dy[i]) - shift - slope * (LOAD(x[i]) - center)) * factor);                              \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static int32_t batch_norm_grad_##NAME(tf_context *context, const tf_tensor *const *inputs,                          \
                                        tf_tensor *const *outputs, const int64_t *parameters) {                       \
    static const grad_passes passes = {sum_blocks_##NAME, sum_channels_##NAME, combine_##NAME};                       \
    return batch_norm_grad(context, inputs, outputs, (const grad_shape *)parameters, &passes);                        \
  }

static int32_t batch_norm_grad(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                               const grad_shape *s, const grad_passes *passes) {
  const float *scale = inputs[2]->data, *variance = inputs[4]->data;
  float *scale_gradient = outputs[1]->data, *offset_gradient = outputs[2]->data;
  if (!outputs[0]->size) {
    memset(scale_gradient, 0, (size_t)outputs[1]->size * sizeof(float));
    memset(offset_gradient, 0, (size_t)outputs[2]->size * sizeof(float));
    return TF_OK;
  }
  double *sums = outputs[5]->data, *means = sums + 2 * MAXIMUM_BLOCKS * s->channels;
  float *vectors = (float *)(means + s->channels);
  const float *centers = inputs[3]->data;
  for (int64_t c = 0; c < s->channels; c++) means[c] = centers[c];
  channel_sums totals = {s->outer, s->channels, s->inner, inputs[1]->data, inputs[0]->data, means, sums, 0, 0};
  add_up(context, &totals, passes->sum_blocks, passes->sum_channels);
  grad_job job = {s, inputs[0]->data, inputs[1]->data, outputs[0]->data, centers, vectors, vectors + s->channels,
                  vectors + 2 * s->channels};
  double count = (double)(s->outer * s->inner);
  for (int64_t c = 0; c < s->channels; c++) {
    double plain = sums[c], weighted = sums[s->channels + c];
    double inverse = 1 / (variance[c] + s->epsilon), factor = sqrt(inverse);
    offset_gradient[c] = (float)plain;
    scale_gradient[c] = (float)(weighted * factor);
    job.factors[c] = (float)(scale[c] * factor);
    job.shifts[c] = s->training ? (float)(plain / count) : 0;
    job.slopes[c] = s->training ? (float)(weighted * inverse / count) : 0;
  }
  int64_t width = s->inner == 1 ? s->channels : s->inner;
  context->parallel_for(context, outputs[0]->size / width, 1 + BLOCK_VALUES / width, passes->combine, &job);
  return TF_OK;
}

#define SAME(x) (x)
GRAD(float32, float, SAME, SAME)
GRAD(float16, tf_float16, tf_float32_from_float16, tf_float16_from_float32)
GRAD(bfloat16, tf_bfloat16, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

TF_TABLE(norm_batch_grad) = {
  TF_ENTRY(batch_norm_grad_float32), TF_ENTRY(batch_norm_grad_float16), TF_ENTRY(batch_norm_grad_bfloat16), TF_END,
};
