"""The extension module timberframe_acmec._native: declarations for cffi, and the C sources."""

from cffi import FFI

builder = FFI()
builder.cdef("""
void *acmec_allocate(size_t bytes);
void acmec_free(void *memory);

void acmec_add(const float *x, const float *y, float *out, int64_t count);
void acmec_subtract(const float *x, const float *y, float *out, int64_t count);
void acmec_multiply(const float *x, const float *y, float *out, int64_t count);
void acmec_relu(const float *x, float *out, int64_t count);
void acmec_bias_add(const float *x, const float *bias, float *out, int64_t rows, int64_t width);
void acmec_softmax(const float *x, float *out, int64_t rows, int64_t width);
void acmec_matmul(const float *a, const float *b, float *out, int64_t rows, int64_t columns, int64_t inner,
                  int64_t a_row, int64_t a_step, int64_t b_step, int64_t b_column);

typedef struct {
  int64_t size, out_size, kernel, stride, before;
} acmec_window;

void acmec_conv2d(const float *x, const float *filter, float *out, int64_t batch, int64_t channels, int64_t filters,
                  const acmec_window *rows, const acmec_window *columns);
void acmec_max_pool(const float *x, float *out, int64_t batch, int64_t channels, const acmec_window *rows,
                    const acmec_window *columns);
""")
builder.set_source(
    "timberframe_acmec._native",
    '#include "native.h"',
    sources=["csrc/native.c"],
    include_dirs=["csrc"],
    depends=["csrc/native.h"],
    extra_compile_args=["-O2"],
)
