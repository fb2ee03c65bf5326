/* MaxPoolGrad, MaxPoolGradGrad and AvgPoolGrad.
 *
 * Tensors have their channels last; where they come first, each channel is an image with one. After the taps of the
 * maxima are known, each row of a gradient gathers what the windows over it have for it: rows are independent, and sums
 * of 16-bit floats are rounded once. Where windows do not overlap, each gives its pixels what they get. */
#include "pool/maxima.h"

/* parameters: a pool_shape. `taps` are those of the maxima, one for each output. */
typedef struct gradient_job {
  const pool_shape *shape;
  const void *input, *output, *gradient;
  void *result;
  const int32_t *taps;
} gradient_job;

/* The windows that a row or column of the image lies in, and its tap in the first of them; it is a stride less in the
 * next one. */
typedef struct covering {
  int64_t first, end, tap;
} covering;

/* The windows over the position `at`, given those over an earlier one (or none: all zero). */
static inline covering cover(covering old, int64_t at, int64_t stride, int64_t pad, int64_t kernel, int64_t count) {
  int64_t position = at + pad;
  while (old.first * stride + kernel <= position) old.first++;
  while (old.end < count && old.end * stride <= position) old.end++;
  old.tap = position - old.first * stride;
  return old;
}

/* SETUP is done for each window (i, j) over a pixel, whose outputs begin at `start`; VALUE is what it has for
 * channel c, g being its gradient. */
#define GATHER(NAME, S, T, LOAD, STORE, SETUP, VALUE)                                                              \
  INLINE void NAME##_block(const gradient_job *job, const covering *down, const covering *across,                  \
                           int64_t first, int64_t count, S *restrict out) {                                        \
    const pool_shape *s = job->shape;                                                                              \
    T sums[BLOCK];                                                                                                 \
    for (int64_t c = 0; c < count; c++) sums[c] = 0;                                                               \
    for (int64_t i = down->first; i < down->end; i++) {                                                            \
      for (int64_t j = across->first; j < across->end; j++) {                                                      \
        int64_t start = first + (i * s->out_width + j) * s->channels;                                              \
        const S *restrict gradient = (const S *)job->gradient + start;                                             \
        SETUP;                                                                                                     \
        for (int64_t c = 0; c < count; c++) {                                                                      \
          T g = (T)LOAD(gradient[c]);                                                                              \
          sums[c] = (T)(sums[c] + (VALUE));                                                                        \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
    for (int64_t c = 0; c < count; c++) out[c] = (S)STORE(sums[c]);                                                \
  }                                                                                                                \
  static void NAME##_rows(void *argument, int64_t begin, int64_t end) {                                            \
    const gradient_job *job = argument;                                                                            \
    const pool_shape *s = job->shape;                                                                              \
    for (int64_t row = begin; row < end; row++) {                                                                  \
      covering across = {0, 0, 0};                                                                                 \
      covering down = cover(across, row % s->height, s->stride_y, s->pad_top, s->kernel_height, s->out_height);    \
      int64_t image = row / s->height * s->out_height * s->out_width * s->channels;                                \
      S *out = (S *)job->result + row * s->width * s->channels;                                                    \
      for (int64_t x = 0; x < s->width; x++, out += s->channels) {                                                 \
        int64_t c = 0;                                                                                             \
        across = cover(across, x, s->stride_x, s->pad_left, s->kernel_width, s->out_width);                        \
        for (; c + BLOCK <= s->channels; c += BLOCK) NAME##_block(job, &down, &across, image + c, BLOCK, out + c); \
        if (s->channels == 1) NAME##_block(job, &down, &across, image, 1, out);                                    \
        else if (c < s->channels) NAME##_block(job, &down, &across, image + c, s->channels - c, out + c);          \
      }                                                                                                            \
    }                                                                                                              \
  }

#define FIND_TAP                                                                                          \
  const int32_t *restrict taps = job->taps + start;                                                       \
  int32_t tap = (int32_t)((down->tap - (i - down->first) * s->stride_y) * s->kernel_width + across->tap - \
                          (j - across->first) * s->stride_x)

/* Whether no pixel is in two windows, and whether each is in one. */
static inline int windows_are_apart(const pool_shape *s) {
  return s->kernel_height <= s->stride_y && s->kernel_width <= s->stride_x;
}
static inline int windows_cover(const pool_shape *s) {
  return s->kernel_height == s->stride_y && s->kernel_width == s->stride_x &&
         s->out_height * s->stride_y - s->pad_top >= s->height && s->out_width * s->stride_x - s->pad_left >= s->width;
}

/* Rows of windows that are apart: the maximum of each gets its gradient, its other pixels get zeros. */
#define SCATTER(NAME, S, T, LOAD, STORE)                                                                            \
  INLINE void max_pool_scatter_##NAME(const pool_shape *s, const window *w, const S *in, const S *restrict gradient, \
                                      S *restrict out, int64_t count) {                                             \
    int32_t taps[BLOCK];                                                                                            \
    argmax_##NAME(s, w, (const void *)in, 0, taps, count);                                                                        \
    for (int64_t i = 0; i < w->bottom - w->top; i++) {                                                              \
      for (int64_t j = 0; j < w->right - w->left; j++) {                                                            \
        S *restrict to = out + (i * s->width + j) * s->channels;                                                    \
        int32_t tap = (int32_t)(i * s->kernel_width + j);                                                           \
        for (int64_t c = 0; c < count; c++) to[c] = (S)STORE((T)(taps[c] == tap ? (T)LOAD(gradient[c]) : 0) + 0);    \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static void max_pool_scatter_##NAME##_rows(void *argument, int64_t begin, int64_t end) {                          \
    const gradient_job *job = argument;                                                                             \
    const pool_shape *s = job->shape;                                                                               \
    int whole = windows_cover(s);                                                                                   \
    for (int64_t row = begin; row < end; row++) {                                                                   \
      int64_t image = row / s->out_height * s->height, y = row % s->out_height, line = s->width * s->channels;      \
      int64_t top = y ? y * s->stride_y - s->pad_top : 0;                                                           \
      int64_t bottom = y + 1 < s->out_height ? (y + 1) * s->stride_y - s->pad_top : s->height;                      \
      if (!whole) memset((S *)job->result + (image + top) * line, 0, (size_t)((bottom - top) * line) * sizeof(S));  \
      const S *gradient = (const S *)job->gradient + row * s->out_width * s->channels;                              \
      for (int64_t x = 0; x < s->out_width; x++, gradient += s->channels) {                                         \
        window w = clip(s, y, x);                                                                                   \
        int64_t at = ((image + w.top) * s->width + w.left) * s->channels, c = 0;                                    \
        const S *in = (const S *)job->input + at;                                                                   \
        S *out = (S *)job->result + at;                                                                             \
        for (; c + BLOCK <= s->channels; c += BLOCK) {                                                              \
          max_pool_scatter_##NAME(s, &w, in + c, gradient + c, out + c, BLOCK);                                     \
        }                                                                                                           \
        if (s->channels == 1) max_pool_scatter_##NAME(s, &w, in, gradient, out, 1);                                 \
        else if (c < s->channels) max_pool_scatter_##NAME(s, &w, in + c, gradient + c, out + c, s->channels - c);   \
      }                                                                                                             \
    }                                                                                                               \
  }

#define MAX_GRADIENT(NAME, S, T, LOAD, STORE)                                                                 \
  SCATTER(NAME, S, T, LOAD, STORE)                                                                            \
  GATHER(max_pool_grad_##NAME, S, T, LOAD, STORE, FIND_TAP, taps[c] == tap ? g : 0)                           \
  static int32_t max_pool_grad_##NAME(tf_context *context, const tf_tensor *const *inputs,                    \
                                      tf_tensor *const *outputs, const int64_t *parameters) {                 \
    const pool_shape *s = (const pool_shape *)parameters;                                                     \
    if (!outputs[0]->size) return TF_OK;                                                                      \
    maxima_job maxima = {s, inputs[0]->data, outputs[1]->data};                                               \
    gradient_job job = {s, inputs[0]->data, NULL, inputs[2]->data, outputs[0]->data, maxima.taps};            \
    if (windows_are_apart(s)) {                                                                               \
      run_rows(context, s->batch * s->out_height, row_values(s), max_pool_scatter_##NAME##_rows, &job);       \
      return TF_OK;                                                                                           \
    }                                                                                                         \
    run_rows(context, s->batch * s->out_height, row_values(s), maxima_##NAME, &maxima);                       \
    run_rows(context, s->batch * s->height, s->width * s->channels, max_pool_grad_##NAME##_rows, &job);       \
    return TF_OK;                                                                                             \
  }                                                                                                           \
  static void max_pool_grad_grad_##NAME##_rows(void *argument, int64_t begin, int64_t end) {                  \
    const gradient_job *job = argument;                                                                       \
    const pool_shape *s = job->shape;                                                                         \
    int64_t channels = s->channels;                                                                           \
    for (int64_t row = begin; row < end; row++) {                                                             \
      int64_t image = row / s->out_height * s->height;                                                        \
      for (int64_t x = 0; x < s->out_width; x++) {                                                            \
        window w = clip(s, row % s->out_height, x);                                                           \
        int64_t at = (row * s->out_width + x) * channels;                                                     \
        const S *y = (const S *)job->output + at;                                                             \
        S *out = (S *)job->result + at;                                                                       \
        memset(out, 0, (size_t)channels * sizeof *out);                                                       \
        for (int64_t i = w.bottom - 1; i >= w.top; i--) { /* backwards, so that the first equal one stays */  \
          for (int64_t j = w.right - 1; j >= w.left; j--) {                                                   \
            int64_t pixel = ((image + i) * s->width + j) * channels;                                          \
            const S *in = (const S *)job->input + pixel, *gradient = (const S *)job->gradient + pixel;        \
            for (int64_t c = 0; c < channels; c++) out[c] = LOAD(in[c]) == LOAD(y[c]) ? gradient[c] : out[c]; \
          }                                                                                                   \
        }                                                                                                     \
      }                                                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  static int32_t max_pool_grad_grad_##NAME(tf_context *context, const tf_tensor *const *inputs,               \
                                           tf_tensor *const *outputs, const int64_t *parameters) {            \
    const pool_shape *s = (const pool_shape *)parameters;                                                     \
    gradient_job job = {s, inputs[0]->data, inputs[1]->data, inputs[2]->data, outputs[0]->data, NULL};        \
    if (!outputs[0]->size) return TF_OK;                                                                      \
    run_rows(context, s->batch * s->out_height, row_values(s), max_pool_grad_grad_##NAME##_rows, &job);       \
    return TF_OK;                                                                                             \
  }

/* Sums of integers wrap, which unsigned arithmetic does. */
MAX_GRADIENT(int8, uint8_t, uint8_t, SAME, SAME)
MAX_GRADIENT(int16, uint16_t, uint16_t, SAME, SAME)
MAX_GRADIENT(int32, uint32_t, uint32_t, SAME, SAME)
MAX_GRADIENT(int64, uint64_t, uint64_t, SAME, SAME)
MAX_GRADIENT(uint8, uint8_t, uint8_t, SAME, SAME)
MAX_GRADIENT(uint16, uint16_t, uint16_t, SAME, SAME)
MAX_GRADIENT(uint32, uint32_t, uint32_t, SAME, SAME)
MAX_GRADIENT(uint64, uint64_t, uint64_t, SAME, SAME)
MAX_GRADIENT(float32, float, float, SAME, SAME)
MAX_GRADIENT(float64, double, double, SAME, SAME)
MAX_GRADIENT(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
MAX_GRADIENT(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

#define FIND_SHARE(T)       \
  window w = clip(s, i, j); \
  T share = 1 / (T)((w.bottom - w.top) * (w.right - w.left))
#define MEAN_GRADIENT(NAME, S, T, LOAD, STORE)                                                          \
  GATHER(avg_pool_grad_##NAME, S, T, LOAD, STORE, FIND_SHARE(T), g * share)                             \
  static int32_t avg_pool_grad_##NAME(tf_context *context, const tf_tensor *const *inputs,              \
                                      tf_tensor *const *outputs, const int64_t *parameters) {           \
    const pool_shape *s = (const pool_shape *)parameters;                                               \
    gradient_job job = {s, NULL, NULL, inputs[0]->data, outputs[0]->data, NULL};                        \
    if (!outputs[0]->size) return TF_OK;                                                                \
    run_rows(context, s->batch * s->height, s->width * s->channels, avg_pool_grad_##NAME##_rows, &job); \
    return TF_OK;                                                                                       \
  }

MEAN_GRADIENT(float32, float, float, SAME, SAME)
MEAN_GRADIENT(float64, double, double, SAME, SAME)
MEAN_GRADIENT(float16, tf_float16, float, tf_float32_from_float16, tf_float16_from_float32)
MEAN_GRADIENT(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, tf_bfloat16_from_float32)

#define MAX_ENTRIES(NAME) TF_ENTRY(max_pool_grad_##NAME), TF_ENTRY(max_pool_grad_grad_##NAME)
TF_TABLE(pool_gradients) = {
  MAX_ENTRIES(int8), MAX_ENTRIES(int16), MAX_ENTRIES(int32), MAX_ENTRIES(int64), MAX_ENTRIES(uint8),
  MAX_ENTRIES(uint16), MAX_ENTRIES(uint32), MAX_ENTRIES(uint64), MAX_ENTRIES(float32), MAX_ENTRIES(float64),
  MAX_ENTRIES(float16), MAX_ENTRIES(bfloat16), TF_ENTRY(avg_pool_grad_float32), TF_ENTRY(avg_pool_grad_float64),
  TF_ENTRY(avg_pool_grad_float16), TF_ENTRY(avg_pool_grad_bfloat16), TF_END,
};
