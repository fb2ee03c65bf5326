/* Memory and kernels of the device ACMEC. Tensors are dense; sizes and strides count elements. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void *acmec_allocate(size_t bytes);
void acmec_free(void *memory);

void acmec_add(const float *x, const float *y, float *out, int64_t count);
void acmec_subtract(const float *x, const float *y, float *out, int64_t count);
void acmec_multiply(const float *x, const float *y, float *out, int64_t count);
void acmec_relu(const float *x, float *out, int64_t count);
void acmec_bias_add(const float *x, const float *bias, float *out, int64_t rows, int64_t width);
void acmec_softmax(const float *x, float *out, int64_t rows, int64_t width);

/* Element [i, k] of a is at i * a_row + k * a_step, element [k, j] of b at k * b_step + j * b_column. */
void acmec_matmul(const float *a, const float *b, float *out, int64_t rows, int64_t columns, int64_t inner,
                  int64_t a_row, int64_t a_step, int64_t b_step, int64_t b_column);

/* How a window moves over one dimension of images; before: padding in front of the first element. */
typedef struct {
  int64_t size, out_size, kernel, stride, before;
} acmec_window;

/* Images are [batch, rows, columns, channels], filters [rows, columns, channels, filters]. */
void acmec_conv2d(const float *x, const float *filter, float *out, int64_t batch, int64_t channels, int64_t filters,
                  const acmec_window *rows, const acmec_window *columns);
void acmec_max_pool(const float *x, float *out, int64_t batch, int64_t channels, const acmec_window *rows,
                    const acmec_window *columns);
