/* One block of a matrix product on the calling thread: C = op(A) op(B), row-major, C overwritten.
 *
 * op(A) is m x k, op(B) is k x n; transpose_a, transpose_b: 0 none, 1 transposed, 2 conjugate transposed (as in
 * common/blas.h). Leading dimensions are those of the stored matrices. Return 0, or -1 for sizes beyond 31 bits. */
#ifndef TIMBERFRAME_CPU_GEMM_H
#define TIMBERFRAME_CPU_GEMM_H

#include "common/table.h"
#include "reduce/elements.h"

typedef struct gemm_block {
  int transpose_a, transpose_b;
  int64_t m, n, k, lda, ldb, ldc;
} gemm_block;

typedef int gemm_function(const gemm_block *block, const void *a, const void *b, void *c);

#define gemm_float32 TF_JOIN(tf_gemm_float32, _, TF_ISA, )
#define gemm_float64 TF_JOIN(tf_gemm_float64, _, TF_ISA, )
#define gemm_complex64 TF_JOIN(tf_gemm_complex64, _, TF_ISA, )
#define gemm_complex128 TF_JOIN(tf_gemm_complex128, _, TF_ISA, )
#define gemm_int16 TF_JOIN(tf_gemm_int16, _, TF_ISA, )
#define gemm_int32 TF_JOIN(tf_gemm_int32, _, TF_ISA, )
#define gemm_int64 TF_JOIN(tf_gemm_int64, _, TF_ISA, )
gemm_function gemm_float32, gemm_float64, gemm_complex64, gemm_complex128, gemm_int16, gemm_int32, gemm_int64;

/* Products so small that a call of the BLAS costs more than they do; -1 where the product is not small. */
#define small_gemm_float32 TF_JOIN(tf_small_gemm_float32, _, TF_ISA, )
#define small_gemm_float64 TF_JOIN(tf_small_gemm_float64, _, TF_ISA, )
gemm_function small_gemm_float32, small_gemm_float64;

/* Products that are neither small nor narrow; -1 where the BLAS is to compute them. */
#define panel_gemm_float32 TF_JOIN(tf_panel_gemm_float32, _, TF_ISA, )
gemm_function panel_gemm_float32;

/* A batch of products, cut into fixed blocks that threads share. */
typedef struct gemm_batch {
  int64_t m, n, k;
  int64_t transpose_a, transpose_b;
  int64_t count;                      /* products */
  int64_t block_rows, block_columns;  /* of a block of C */
  int64_t rank;                       /* batch dimensions */
  int64_t dims[3 * TF_MAX_RANK];      /* sizes, then strides of A and of B in matrices (0 where broadcast) */
} gemm_batch;

#define gemm_run TF_JOIN(tf_gemm_run, _, TF_ISA, )
/* Runs the batch; `element` is the size of one. Returns TF_OK, or reports reason 1 (sizes beyond 31 bits). */
int32_t gemm_run(tf_context *context, const gemm_batch *batch, gemm_function *function, int64_t element, const void *a,
                 const void *b, void *c);

#endif
