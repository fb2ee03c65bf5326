/* Where the maxima of windows are. */
#ifndef TIMBERFRAME_CPU_POOL_MAXIMA_H
#define TIMBERFRAME_CPU_POOL_MAXIMA_H

#include <string.h>

#include "common/half.h"
#include "common/table.h"
#include "pool/shape.h"

#define BLOCK 32            /* channels whose maxima or sums stay in registers */
#define SERIAL_VALUES 16384 /* values read that are worth a thread */

typedef struct maxima_job {
  const pool_shape *shape;
  const void *input;
  int32_t *taps;
} maxima_job;

#define INLINE static inline __attribute__((always_inline))

/* maxima_<type> finds the taps of the maxima in rows of outputs of NHWC images. The first element of a window counts as
 * larger than nothing even where it is NaN. The channels of a block are a constant number where they can be. */
#define MAXIMA(NAME, S, T, LOAD)                                                                             \
  INLINE void argmax_##NAME(const pool_shape *s, const window *w, const S *in, int64_t start, int32_t *taps, \
                           int64_t count) {                                                                  \
    T best[BLOCK];                                                                                           \
    int32_t best_tap[BLOCK];                                                                                 \
    for (int64_t c = 0; c < count; c++) best[c] = (T)LOAD(in[c]), best_tap[c] = (int32_t)start;              \
    for (int64_t i = 0; i < w->bottom - w->top; i++) {                                                       \
      for (int64_t j = 0; j < w->right - w->left; j++) {                                                     \
        const S *from = in + (i * s->width + j) * s->channels;                                               \
        int32_t tap = (int32_t)(start + i * s->kernel_width + j);                                            \
        for (int64_t c = 0; c < count; c++) {                                                                \
          T v = (T)LOAD(from[c]), old = best[c];                                                             \
          int32_t larger = -(int32_t)(v > old); /* a mask: a choice would become a branch */                 \
          best[c] = v > old ? v : old;                                                                       \
          best_tap[c] ^= (best_tap[c] ^ tap) & larger;                                                       \
        }                                                                                                    \
      }                                                                                                      \
    }                                                                                                        \
    memcpy(taps, best_tap, (size_t)count * sizeof *best_tap);                                                \
  }                                                                                                          \
  static void maxima_##NAME(void *argument, int64_t begin, int64_t end) {                                    \
    const maxima_job *job = argument;                                                                        \
    const pool_shape *s = job->shape;                                                                        \
    for (int64_t row = begin; row < end; row++) {                                                            \
      int64_t image = row / s->out_height * s->height, y = row % s->out_height;                              \
      int32_t *taps = job->taps + row * s->out_width * s->channels;                                          \
      for (int64_t x = 0; x < s->out_width; x++) {                                                           \
        window w = clip(s, y, x);                                                                            \
        int64_t i = w.top - (y * s->stride_y - s->pad_top), j = w.left - (x * s->stride_x - s->pad_left);    \
        const S *in = (const S *)job->input + ((image + w.top) * s->width + w.left) * s->channels;           \
        int64_t c = 0, start = i * s->kernel_width + j;                                                      \
        for (; c + BLOCK <= s->channels; c += BLOCK) argmax_##NAME(s, &w, in + c, start, taps + c, BLOCK);   \
        if (s->channels == 1) argmax_##NAME(s, &w, in, start, taps, 1);                                      \
        else if (c < s->channels) argmax_##NAME(s, &w, in + c, start, taps + c, s->channels - c);            \
        taps += s->channels;                                                                                 \
      }                                                                                                      \
    }                                                                                                        \
  }
#define SAME(x) (x)

MAXIMA(int8, int8_t, int8_t, SAME)
MAXIMA(int16, int16_t, int16_t, SAME)
MAXIMA(int32, int32_t, int32_t, SAME)
MAXIMA(int64, int64_t, int64_t, SAME)
MAXIMA(uint8, uint8_t, uint8_t, SAME)
MAXIMA(uint16, uint16_t, uint16_t, SAME)
MAXIMA(uint32, uint32_t, uint32_t, SAME)
MAXIMA(uint64, uint64_t, uint64_t, SAME)
MAXIMA(float32, float, float, SAME)
MAXIMA(float64, double, double, SAME)
MAXIMA(float16, tf_float16, float, tf_float32_from_float16)
MAXIMA(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16)

/* Runs `body` on rows, each of which reads this many values. */
static inline void run_rows(tf_context *context, int64_t rows, int64_t values, tf_range *body, void *job) {
  context->parallel_for(context, rows, 1 + SERIAL_VALUES / (values + 1), body, job);
}

static inline int64_t row_values(const pool_shape *s) {
  return s->out_width * s->channels * s->kernel_height * s->kernel_width;
}

#endif
