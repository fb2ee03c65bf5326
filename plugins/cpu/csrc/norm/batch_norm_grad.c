/* FusedBatchNormGrad: tensors seen as [outer, channels, inner], inner being 1 where channels come last.
 *
 * With the deviations d = x - mean and the factor f = 1 / sqrt(variance + epsilon), the gradients by offset and
 * scale are the sums of dy and of f d dy; that by x is scale f dy, less in training its means over the batch: the
 * gradient by the batch's own mean and variance. Sums are in float64, of blocks of rows whose number does not depend
 * on the threads, then of the blocks. */
#include <math.h>
#include <string.h>

#include "common/half.h"
#include "common/table.h"

#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM_BLOCKS 64
#define BLOCK_VALUES 16384 /* least values in a block */
#define SUMS 8             /* partial sums of a contiguous run */

/* The parameters, in this order. The workspace holds float64 sums [MAXIMUM_BLOCKS, 2, channels], then three float32
 * vectors of channels. */
typedef struct grad_shape {
  int64_t outer, channels, inner, training;
  double epsilon;
} grad_shape;

/* The result is factors * (dy - shifts - slopes * (x - centers)). */
typedef struct grad_job {
  const grad_shape *shape;
  const void *dy, *x;
  void *dx;
  int64_t blocks, rows; /* rows of a block, channels last */
  double *sums;
  const float *centers;
  float *factors, *shifts, *slopes;
} grad_job;

typedef struct grad_passes {
  tf_range *sum_blocks, *sum_channels, *combine;
} grad_passes;

#define GRAD(NAME, S, LOAD, STORE)                                                                                    \
  /* Channels last: blocks of rows. */                                                                                \
  static void sum_blocks_##NAME(void *argument, int64_t begin, int64_t end) {                                         \
    const grad_job *job = argument;                                                                                   \
    int64_t channels = job->shape->channels;                                                                          \
    const float *restrict centers = job->centers;                                                                     \
    for (int64_t block = begin; block < end; block++) {                                                               \
      double *restrict plain = job->sums + block * 2 * channels, *restrict weighted = plain + channels;               \
      memset(plain, 0, (size_t)(2 * channels) * sizeof *plain);                                                       \
      int64_t last = MINIMUM((block + 1) * job->rows, job->shape->outer);                                             \
      for (int64_t row = block * job->rows; row < last; row++) {                                                      \
        const S *restrict dy = (const S *)job->dy + row * channels, *restrict x = (const S *)job->x + row * channels; \
        for (int64_t c = 0; c < channels; c++) {                                                                      \
          double g = LOAD(dy[c]), d = (double)LOAD(x[c]) - centers[c];                                                \
          plain[c] += g;                                                                                              \
          weighted[c] += g * d;                                                                                       \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  /* Channels first: whole channels. */                                                                               \
  static void sum_channels_##NAME(void *argument, int64_t begin, int64_t end) {                                       \
    const grad_job *job = argument;                                                                                   \
    int64_t channels = job->shape->channels, inner = job->shape->inner;                                               \
    for (int64_t c = begin; c < end; c++) {                                                                           \
      double plain[SUMS] = {0}, weighted[SUMS] = {0}, center = job->centers[c];                                       \
      for (int64_t n = 0; n < job->shape->outer; n++) {                                                               \
        const S *dy = (const S *)job->dy + (n * channels + c) * inner;                                                \
        const S *x = (const S *)job->x + (n * channels + c) * inner;                                                  \
        int64_t i = 0;                                                                                                \
        for (; i + SUMS <= inner; i += SUMS) {                                                                        \
          for (int k = 0; k < SUMS; k++) {                                                                            \
            double g = LOAD(dy[i + k]);                                                                               \
            plain[k] += g;                                                                                            \
            weighted[k] += g * (LOAD(x[i + k]) - center);                                                             \
          }                                                                                                           \
        }                                                                                                             \
        for (; i < inner; i++) {                                                                                      \
          double g = LOAD(dy[i]);                                                                                     \
          plain[0] += g;                                                                                              \
          weighted[0] += g * (LOAD(x[i]) - center);                                                                   \
        }                                                                                                             \
      }                                                                                                               \
      for (int k = 1; k < SUMS; k++) plain[0] += plain[k], weighted[0] += weighted[k];                                \
      job->sums[c] = plain[0];                                                                                        \
      job->sums[channels + c] = weighted[0];                                                                          \
    }                                                                                                                 \
  }                                                                                                                   \
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
  double *sums = outputs[5]->data;
  float *vectors = (float *)(sums + 2 * MAXIMUM_BLOCKS * s->channels);
  int64_t least = BLOCK_VALUES / s->channels + 1, rows = (s->outer + MAXIMUM_BLOCKS - 1) / MAXIMUM_BLOCKS;
  if (rows < least) rows = least;
  grad_job job = {s, inputs[0]->data, inputs[1]->data, outputs[0]->data, 1, rows, sums, inputs[3]->data, vectors,
                  vectors + s->channels, vectors + 2 * s->channels};
  if (s->inner == 1) {
    job.blocks = (s->outer + rows - 1) / rows;
    context->parallel_for(context, job.blocks, 1, passes->sum_blocks, &job);
  } else {
    context->parallel_for(context, s->channels, 1 + BLOCK_VALUES / (s->outer * s->inner), passes->sum_channels, &job);
  }
  double count = (double)(s->outer * s->inner);
  for (int64_t c = 0; c < s->channels; c++) {
    double plain = 0, weighted = 0, inverse = 1 / (variance[c] + s->epsilon), factor = sqrt(inverse);
    for (int64_t b = 0; b < job.blocks; b++) {
      plain += sums[b * 2 * s->channels + c];
      weighted += sums[(b * 2 + 1) * s->channels + c];
    }
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
