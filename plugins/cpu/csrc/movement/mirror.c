/* MirrorPadGrad: each element of the output is the sum of the input's at its own position and at those that mirror it.
 * float16 and bfloat16 are added as float32 and rounded once. */
#include <string.h>

#include "common/table.h"
#include "reduce/elements.h"

enum { GRAIN = 1 << 13, MOST_ROWS = 2187 }; /* 3 to the 7: each dimension but the last has up to three positions */

typedef struct dimension {
  int64_t size, before, after; /* size is the output's */
} dimension;

typedef struct mirror_job {
  const void *input;
  void *output;
  int64_t rank, edge, unit; /* edge: 1 where the edge itself is not mirrored; unit: elements that stay together */
  const dimension *dimensions;
} mirror_job;

/* The positions along one dimension of the input that belong to index i of the output; returns their number. */
static inline int64_t find_sources(const dimension *d, int64_t edge, int64_t i, int64_t *source) {
  int64_t count = 1;
  source[0] = d->before + i;
  if (i >= edge && i < d->before + edge) source[count++] = d->before - 1 + edge - i;
  const int64_t back = d->size - 1 - edge - i;
  if (back >= 0 && back < d->after) source[count++] = d->before + d->size + back;
  return count;
}

/* Where the rows of the input begin that belong to row `row` of the output; returns their number. */
static int64_t find_rows(const mirror_job *job, int64_t row, int64_t *begins) {
  const dimension *last = job->dimensions + job->rank - 1;
  int64_t count = 1, stride = (last->before + last->size + last->after) * job->unit;
  begins[0] = 0;
  for (int64_t d = job->rank - 2; d >= 0; d--) {
    const dimension *at = job->dimensions + d;
    int64_t source[3];
    const int64_t found = find_sources(at, job->edge, row % at->size, source);
    row /= at->size;
    for (int64_t p = found - 1; p >= 0; p--)
      for (int64_t i = 0; i < count; i++) begins[p * count + i] = begins[i] + source[p] * stride;
    count *= found;
    stride *= at->before + at->size + at->after;
  }
  return count;
}

#define MIRROR(name, ELEMENT, ACCUMULATOR, load, add, store)                                                    \
  /* Elements of a row of the output that belong to index i of the last dimension. */                           \
  static void mirror_border_##name(const mirror_job *job, const int64_t *rows, int64_t count, int64_t i,        \
                                   ELEMENT *out) {                                                              \
    int64_t source[3];                                                                                          \
    const int64_t found = find_sources(job->dimensions + job->rank - 1, job->edge, i, source);                  \
    for (int64_t u = 0; u < job->unit; u++) {                                                                   \
      ACCUMULATOR sum;                                                                                          \
      memset(&sum, 0, sizeof sum);                                                                              \
      for (int64_t r = 0; r < count; r++)                                                                       \
        for (int64_t p = 0; p < found; p++)                                                                     \
          sum = add(sum, load(((const ELEMENT *)job->input)[rows[r] + source[p] * job->unit + u]));             \
      out[i * job->unit + u] = store(sum);                                                                      \
    }                                                                                                           \
  }                                                                                                             \
  static void mirror_rows_##name(void *argument, int64_t begin, int64_t end) {                                  \
    const mirror_job *job = argument;                                                                           \
    const dimension *last = job->dimensions + job->rank - 1;                                                    \
    const int64_t low = last->before ? last->before + job->edge : 0;                                            \
    const int64_t high = last->after ? last->size - job->edge - last->after : last->size;                       \
    const int64_t inside = low < high ? (high - low) * job->unit : 0;                                           \
    int64_t rows[MOST_ROWS];                                                                                    \
    for (int64_t row = begin; row < end; row++) {                                                               \
      const int64_t count = find_rows(job, row, rows);                                                          \
      ELEMENT *out = (ELEMENT *)job->output + row * last->size * job->unit, *to = out + low * job->unit;        \
      const ELEMENT *from = (const ELEMENT *)job->input + (last->before + low) * job->unit;                     \
      if (count == 1) {                                                                                         \
        memcpy(to, from + rows[0], (size_t)inside * sizeof(ELEMENT));                                           \
      } else if (count == 2) {                                                                                  \
        const ELEMENT *const a = from + rows[0], *const b = from + rows[1];                                     \
        for (int64_t i = 0; i < inside; i++) to[i] = store(add(load(a[i]), load(b[i])));                        \
      } else {                                                                                                  \
        for (int64_t i = 0; i < inside; i++) {                                                                  \
          ACCUMULATOR sum = load(from[rows[0] + i]);                                                            \
          for (int64_t r = 1; r < count; r++) sum = add(sum, load(from[rows[r] + i]));                          \
          to[i] = store(sum);                                                                                   \
        }                                                                                                       \
      }                                                                                                         \
      for (int64_t i = 0; i < (inside ? low : last->size); i++) mirror_border_##name(job, rows, count, i, out); \
      for (int64_t i = inside ? high : last->size; i < last->size; i++)                                         \
        mirror_border_##name(job, rows, count, i, out);                                                         \
    }                                                                                                           \
  }                                                                                                             \
  /* parameters: rank, edge, unit, then a `dimension` for each. */                                              \
  static int32_t mirror_pad_grad_##name(tf_context *context, const tf_tensor *const *inputs,                    \
                                        tf_tensor *const *outputs, const int64_t *parameters) {                 \
    mirror_job job = {inputs[0]->data, outputs[0]->data, parameters[0],                                         \
                      parameters[1],   parameters[2],    (const dimension *)(parameters + 3)};                  \
    const int64_t size = job.dimensions[job.rank - 1].size * job.unit;                                          \
    if (outputs[0]->size == 0) return TF_OK;                                                                    \
    context->parallel_for(context, outputs[0]->size / size, GRAIN / size + 1, mirror_rows_##name, &job);        \
    return TF_OK;                                                                                               \
  }

MIRROR(float32, float, float, AS_IT_IS, ADD, AS_IT_IS)
MIRROR(float64, double, double, AS_IT_IS, ADD, AS_IT_IS)
MIRROR(float16, tf_float16, float, FROM_FLOAT16, ADD, tf_float16_from_float32)
MIRROR(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, ADD, tf_bfloat16_from_float32)
MIRROR(complex64, tf_complex64, tf_complex64, AS_IT_IS, tf_complex64_add, AS_IT_IS)
MIRROR(complex128, tf_complex128, tf_complex128, AS_IT_IS, tf_complex128_add, AS_IT_IS)
MIRROR(int8, uint8_t, uint32_t, AS_IT_IS, ADD, (uint8_t))
MIRROR(int16, uint16_t, uint32_t, AS_IT_IS, ADD, (uint16_t))
MIRROR(int32, uint32_t, uint32_t, AS_IT_IS, ADD, AS_IT_IS)
MIRROR(int64, uint64_t, uint64_t, AS_IT_IS, ADD, AS_IT_IS)

TF_TABLE(movement_mirror) = {
  TF_ENTRY(mirror_pad_grad_float32),
  TF_ENTRY(mirror_pad_grad_float64),
  TF_ENTRY(mirror_pad_grad_float16),
  TF_ENTRY(mirror_pad_grad_bfloat16),
  TF_ENTRY(mirror_pad_grad_complex64),
  TF_ENTRY(mirror_pad_grad_complex128),
  TF_ENTRY(mirror_pad_grad_int8),
  TF_ENTRY(mirror_pad_grad_int16),
  TF_ENTRY(mirror_pad_grad_int32),
  TF_ENTRY(mirror_pad_grad_int64),
    TF_END,
};
