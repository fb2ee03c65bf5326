/* timberframe/kernel.h: the interface of native kernels.
 *
 * A native kernel is a C function of type tf_kernel. It runs on preallocated outputs, allocates nothing, and returns
 * TF_OK or what tf_fail() returned. Every struct begins with its size in bytes; fields are only ever appended, so code
 * compiled against an older header of the same TF_ABI_MAJOR keeps working. */
#ifndef TIMBERFRAME_KERNEL_H
#define TIMBERFRAME_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TF_ABI_MAJOR 2
#define TF_MAX_RANK 8
#define TF_ALIGNMENT 64 /* of workspaces; other tensors are sure to be aligned to their element alone */

/* TensorFlow's dtype numbers. */
enum tf_dtype {
  TF_FLOAT32 = 1, TF_FLOAT64 = 2, TF_INT32 = 3, TF_UINT8 = 4, TF_INT16 = 5, TF_INT8 = 6, TF_COMPLEX64 = 8,
  TF_INT64 = 9, TF_BOOL = 10, TF_BFLOAT16 = 14, TF_UINT16 = 17, TF_COMPLEX128 = 18, TF_FLOAT16 = 19,
  TF_UINT32 = 22, TF_UINT64 = 23
};

/* TensorFlow's status codes, the ones that a kernel may return. */
enum tf_code {
  TF_OK = 0, TF_CANCELLED = 1, TF_INVALID_ARGUMENT = 3, TF_RESOURCE_EXHAUSTED = 8, TF_OUT_OF_RANGE = 11,
  TF_UNIMPLEMENTED = 12, TF_INTERNAL = 13
};

/* A dense row-major tensor. strides are in elements. On the CPU one of more than TF_MAX_RANK dimensions comes as a single
 * dimension of all its elements; kernels that need its dimensions get them as parameters. */
typedef struct tf_tensor {
  uint32_t struct_size;
  int32_t dtype;
  void *data;
  int64_t size; /* number of elements; 0 when a dimension is 0 */
  int32_t rank;
  int32_t reserved;
  int64_t shape[TF_MAX_RANK];
  int64_t strides[TF_MAX_RANK];
} tf_tensor;

/* Why a kernel failed. The words are made in Python: `reason` counts from 1 in the kernel's own table. */
typedef struct tf_error {
  uint32_t struct_size;
  int32_t code;
  int32_t reason;
  int32_t reserved;
  int64_t node;
  int64_t detail[4];
} tf_error;

typedef struct tf_context tf_context;
typedef void tf_range(void *argument, int64_t begin, int64_t end);

/* What the runtime offers to a kernel. */
struct tf_context {
  uint32_t struct_size;
  int32_t thread_count; /* most threads that parallel_for uses */
  tf_error *error;
  const volatile int32_t *cancel; /* not zero: the run was cancelled, return TF_CANCELLED soon */
  /* Calls body on disjoint ranges that cover [0, count), each a multiple of `grain` long but for the last, on several
   * threads at once; returns when all are done. Ranges depend on count and grain alone only if the body does; so a
   * result that must not depend on the number of threads is split by the kernel itself into `count` fixed blocks.
   * May be nested (the inner one then runs on the caller's thread). Stops early when cancelled. */
  void (*parallel_for)(tf_context *context, int64_t count, int64_t grain, tf_range *body, void *argument);
  void *runtime; /* the runtime's own */
};

/* Inputs without those that only matter for planning (the op's shape inputs), then outputs, then the workspace if the
 * builder asked for one. For an output of data-dependent size, write its true shape into outputs[i]->shape and size.
 * parameters: the int64 words that the builder gave (doubles as their bits), aligned to 8 bytes. */
typedef int32_t tf_kernel(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                          const int64_t *parameters);

/* Reports an error and returns its code: `return tf_fail(context, TF_INVALID_ARGUMENT, 1, index, limit, 0, 0);` */
static inline int32_t tf_fail(tf_context *context, int32_t code, int32_t reason, int64_t d0, int64_t d1, int64_t d2,
                              int64_t d3) {
  context->error->code = code;
  context->error->reason = reason;
  context->error->detail[0] = d0;
  context->error->detail[1] = d1;
  context->error->detail[2] = d2;
  context->error->detail[3] = d3;
  return code;
}

/* Reads a parameter that the builder gave as a float. */
static inline double tf_double(int64_t word) {
  union { int64_t word; double value; } u = {word};
  return u.value;
}

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(tf_tensor) == 32 + 16 * TF_MAX_RANK + 0, "tf_tensor has no padding");
_Static_assert(offsetof(tf_tensor, shape) == 32, "tf_tensor fields are where older kernels expect them");
_Static_assert(sizeof(tf_error) == 56 && offsetof(tf_error, node) == 16, "tf_error has no padding");
_Static_assert(offsetof(tf_context, error) == 8, "tf_context fields are where older kernels expect them");
#endif

/* Stands once, outside of functions, in each library of kernels that Python loads by timberframe_sdk.NativeLibrary: a
 * library that was compiled against another TF_ABI_MAJOR is then refused when it is loaded. */
#if defined(_WIN32)
#define TF_EXPORT __declspec(dllexport)
#else
#define TF_EXPORT __attribute__((visibility("default")))
#endif
#define TF_KERNEL_LIBRARY \
  TF_EXPORT int32_t tf_abi_major(void) { return TF_ABI_MAJOR; }

#ifdef __cplusplus
}
#endif
#endif
