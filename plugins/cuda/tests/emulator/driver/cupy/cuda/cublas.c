/* The functions of cuBLAS that timberframe_cuda finds by ctypes; what they do is in cublas.py, which sets `hooks`. */
#include <stddef.h>

typedef struct {
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, void *stream);
  int (*set_workspace)(void *handle, void *workspace, size_t size);
  int (*set_math_mode)(void *handle, int mode);
  int (*multiply)(void *handle, const long long *numbers, const void *alpha, const void *const *operands,
                  const void *beta, void *result);
} hooks_t;

hooks_t hooks;

int cublasCreate_v2(void **handle) { return hooks.create(handle); }
int cublasDestroy_v2(void *handle) { return hooks.destroy(handle); }
int cublasSetStream_v2(void *handle, void *stream) { return hooks.set_stream(handle, stream); }
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size) {
  return hooks.set_workspace(handle, workspace, size);
}
int cublasSetMathMode(void *handle, int mode) { return hooks.set_math_mode(handle, mode); }

int cublasGemmStridedBatchedEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                               const void *a, int a_type, int lda, long long stride_a, const void *b, int b_type,
                               int ldb, long long stride_b, const void *beta, void *c, int c_type, int ldc,
                               long long stride_c, int count, int compute, int algorithm) {
  const long long numbers[] = {transa, transb, m, n, k, a_type, lda, stride_a, b_type, ldb, stride_b,
                               c_type, ldc, stride_c, count, compute, algorithm};
  const void *const operands[] = {a, b};
  return hooks.multiply(handle, numbers, alpha, operands, beta, c);
}
