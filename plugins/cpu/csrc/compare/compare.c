/* Comparisons and logic; a truth value is one byte, 0 or 1. */
#include "common/streaming.h"

#include <math.h>

#include "common/broadcast_half.h"

/* X(op, type, T, expression): one loop and kernel each. x > y is y < x with the operands exchanged. */

#define EQUALITY(X, type, T)                                                                                         \
  X(equal, type, T, x == y)                                                                                          \
  X(not_equal, type, T, x != y)
#define ORDER(X, type, T)                                                                                            \
  X(less, type, T, x < y)                                                                                            \
  X(less_equal, type, T, x <= y)
#define ORDERED(X)                                                                                                   \
  ORDER(X, float32, float)                                                                                           \
  ORDER(X, float64, double)                                                                                          \
  ORDER(X, int8, int8_t)                                                                                             \
  ORDER(X, int16, int16_t)                                                                                           \
  ORDER(X, int32, int32_t)                                                                                           \
  ORDER(X, int64, int64_t)                                                                                           \
  ORDER(X, uint8, uint8_t)                                                                                           \
  ORDER(X, uint16, uint16_t)                                                                                         \
  ORDER(X, uint32, uint32_t)                                                                                         \
  ORDER(X, uint64, uint64_t)
#define PLAIN(X)                                                                                                     \
  EQUALITY(X, float32, float)                                                                                        \
  EQUALITY(X, float64, double)                                                                                       \
  EQUALITY(X, complex64, float _Complex)                                                                             \
  EQUALITY(X, complex128, double _Complex)                                                                           \
  EQUALITY(X, uint8, uint8_t)                                                                                        \
  EQUALITY(X, uint16, uint16_t)                                                                                      \
  EQUALITY(X, uint32, uint32_t)                                                                                      \
  EQUALITY(X, uint64, uint64_t)                                                                                      \
  X(logical_and, bool, uint8_t, x & y)                                                                               \
  X(logical_or, bool, uint8_t, x | y)
#define EQUALITY_OF_HALVES(X) X(equal) X(not_equal)
#define ORDER_OF_HALVES(X) X(less) X(less_equal)

#define EXCHANGED(from, to)                                                                                          \
  static void to##_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {                      \
    from##_loop(count, (const void *const[]){in[1], in[0]}, (const int64_t[]){step[1], step[0]}, out);               \
  }                                                                                                                  \
  TF_BROADCAST_KERNEL(to, 2)

#define DEFINE(op, type, T, expression)                                                                              \
  TF_LOOP2(op##_##type, T, uint8_t, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define DEFINE_HALVES(op)                                                                                            \
  TF_HALF_TESTS2(op) TF_BROADCAST_KERNEL(op##_float16, 2) TF_BROADCAST_KERNEL(op##_bfloat16, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),
#define LIST_HALVES(op) TF_ENTRY(op##_float16), TF_ENTRY(op##_bfloat16),

#define GREATER_less(type) EXCHANGED(less_##type, greater_##type)
#define GREATER_less_equal(type) EXCHANGED(less_equal_##type, greater_equal_##type)
#define DEFINE_GREATER(op, type, T, expression) GREATER_##op(type)
#define DEFINE_GREATER_HALVES(op) GREATER_##op(float16) GREATER_##op(bfloat16)
#define LIST_less(type) TF_ENTRY(greater_##type),
#define LIST_less_equal(type) TF_ENTRY(greater_equal_##type),
#define LIST_GREATER(op, type, T, expression) LIST_##op(type)
#define LIST_GREATER_HALVES(op) LIST_##op(float16) LIST_##op(bfloat16)

PLAIN(DEFINE)
ORDERED(DEFINE)
EQUALITY_OF_HALVES(DEFINE_HALVES)
ORDER_OF_HALVES(DEFINE_HALVES)
ORDERED(DEFINE_GREATER)
ORDER_OF_HALVES(DEFINE_GREATER_HALVES)

/* One truth value that the shapes alone decide. parameters: the value. */
static int32_t truth(tf_context *context, const tf_tensor *const *inputs, tf_tensor *const *outputs,
                     const int64_t *parameters) {
  (void)context, (void)inputs;
  *(uint8_t *)outputs[0]->data = (uint8_t)parameters[0];
  return TF_OK;
}

typedef struct near_job {
  const void *x, *y;
  uint8_t *out;
  double tolerance;
} near_job;

/* |x - y| < tolerance on operands of one shape. parameters: tolerance, grain. */
#define NEAR(type, T, fabs_T)                                                                                        \
  static void near_range_##type(void *argument, int64_t begin, int64_t end) {                                        \
    const near_job *job = argument;                                                                                  \
    const T *x = job->x, *y = job->y, tolerance = (T)job->tolerance;                                                 \
    uint8_t *out = job->out;                                                                                         \
    TF_VECTOR for (int64_t i = begin; i < end; i++) out[i] = fabs_T(x[i] - y[i]) < tolerance;                        \
  }                                                                                                                  \
  static int32_t approximate_equal_##type(tf_context *context, const tf_tensor *const *inputs,                       \
                                          tf_tensor *const *outputs, const int64_t *parameters) {                    \
    near_job job = {inputs[0]->data, inputs[1]->data, outputs[0]->data, tf_double(parameters[0])};                   \
    context->parallel_for(context, outputs[0]->size, parameters[1], near_range_##type, &job);                        \
    return TF_OK;                                                                                                    \
  }
NEAR(float32, float, fabsf)
NEAR(float64, double, fabs)

TF_TABLE(compare) = {
    PLAIN(LIST) ORDERED(LIST) EQUALITY_OF_HALVES(LIST_HALVES) ORDER_OF_HALVES(LIST_HALVES)
    ORDERED(LIST_GREATER) ORDER_OF_HALVES(LIST_GREATER_HALVES)
    TF_ENTRY(truth), TF_ENTRY(approximate_equal_float32), TF_ENTRY(approximate_equal_float64), TF_END,
};
