/* Plain C that stands for your hardware: see native.h. */
#include "native.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { ALIGNMENT = 64 };

void *acmec_allocate(size_t bytes) {
  return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

void acmec_free(void *memory) { free(memory); }

void acmec_add(const float *x, const float *y, float *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = x[i] + y[i];
}

void acmec_subtract(const float *x, const float *y, float *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = x[i] - y[i];
}

void acmec_multiply(const float *x, const float *y, float *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = x[i] * y[i];
}

void acmec_relu(const float *x, float *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = x[i] <= 0 ? 0 : x[i]; /* a NaN stays */
}

void acmec_bias_add(const float *x, const float *bias, float *out, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < width; j++) out[i * width + j] = x[i * width + j] + bias[j];
}

void acmec_softmax(const float *x, float *out, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; i++, x += width, out += width) {
    float largest = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < width; j++) largest = x[j] > largest || isnan(x[j]) ? x[j] : largest;
    for (int64_t j = 0; j < width; j++) sum += exp((double)x[j] - largest);
    for (int64_t j = 0; j < width; j++) out[j] = (float)(exp((double)x[j] - largest) / sum);
  }
}

void acmec_matmul(const float *a, const float *b, float *out, int64_t rows, int64_t columns, int64_t inner,
                  int64_t a_row, int64_t a_step, int64_t b_step, int64_t b_column) {
  for (int64_t i = 0; i < rows; i++, out += columns) {
    for (int64_t j = 0; j < columns; j++) out[j] = 0;
    for (int64_t k = 0; k < inner; k++) {
      const float factor = a[i * a_row + k * a_step];
      for (int64_t j = 0; j < columns; j++) out[j] += factor * b[k * b_step + j * b_column];
    }
  }
}

/* The part of the window of output `at` that lies within the input: taps `first` to `end` - 1, from element `start`. */
typedef struct {
  int64_t first, end, start;
} taps;

static taps taps_of(const acmec_window *w, int64_t at) {
  const int64_t start = at * w->stride - w->before;
  const int64_t first = start < 0 ? -start : 0;
  const int64_t end = start + w->kernel > w->size ? w->size - start : w->kernel;
  return (taps){first, end, start};
}

void acmec_conv2d(const float *x, const float *filter, float *out, int64_t batch, int64_t channels, int64_t filters,
                  const acmec_window *rows, const acmec_window *columns) {
  for (int64_t n = 0; n < batch; n++, x += rows->size * columns->size * channels)
    for (int64_t i = 0; i < rows->out_size; i++)
      for (int64_t j = 0; j < columns->out_size; j++, out += filters) {
        const taps r = taps_of(rows, i), c = taps_of(columns, j);
        for (int64_t f = 0; f < filters; f++) out[f] = 0;
        for (int64_t u = r.first; u < r.end; u++)
          for (int64_t v = c.first; v < c.end; v++) {
            const float *pixel = x + ((r.start + u) * columns->size + c.start + v) * channels;
            const float *weights = filter + (u * columns->kernel + v) * channels * filters;
            for (int64_t d = 0; d < channels; d++, weights += filters)
              for (int64_t f = 0; f < filters; f++) out[f] += pixel[d] * weights[f];
          }
      }
}

void acmec_max_pool(const float *x, float *out, int64_t batch, int64_t channels, const acmec_window *rows,
                    const acmec_window *columns) {
  for (int64_t n = 0; n < batch; n++, x += rows->size * columns->size * channels)
    for (int64_t i = 0; i < rows->out_size; i++)
      for (int64_t j = 0; j < columns->out_size; j++, out += channels) {
        const taps r = taps_of(rows, i), c = taps_of(columns, j);
        for (int64_t d = 0; d < channels; d++) out[d] = -FLT_MAX; /* what a window without numbers gives */
        for (int64_t u = r.first; u < r.end; u++)
          for (int64_t v = c.first; v < c.end; v++) {
            const float *pixel = x + ((r.start + u) * columns->size + c.start + v) * channels;
            for (int64_t d = 0; d < channels; d++)
              if (pixel[d] > out[d]) out[d] = pixel[d];
          }
      }
}
