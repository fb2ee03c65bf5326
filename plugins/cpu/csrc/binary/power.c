/* Powers, angles and neighbours of floating-point numbers. */
#include <timberframe/math/neighbour.h>
#include <timberframe/math/power.h>

#include "common/broadcast_half.h"

/* Powers of floats in blocks: first as if every element were of the usual kind, and again with all the special cases if
 * one is not. */
TF_COSTLY_LOOP2(any_power_float32, float, float, power_float32_of(x, y))
#if TF_HAS_FMA
static TF_NOINLINE void power_float32_loop(int64_t count, const void *const *in, const int64_t *step, void *out) {
  float repeated[2][TF_BLOCK], result[TF_BLOCK];
  for (int32_t k = 0; k < 2; k++) {
    for (int64_t i = 0; !step[k] && i < TF_BLOCK && i < count; i++) repeated[k][i] = *(const float *)in[k];
  }
  for (int64_t begin = 0; begin < count; begin += TF_BLOCK) {
    const int64_t size = count - begin < TF_BLOCK ? count - begin : TF_BLOCK;
    const float *x = step[0] ? (const float *)in[0] + begin : repeated[0];
    const float *y = step[1] ? (const float *)in[1] + begin : repeated[1];
    int rare = 0;
    for (int64_t i = 0; i < size; i++) result[i] = power_usual_float32(x[i], y[i], &rare);
    if (rare) {
      any_power_float32_loop(size, (const void *const[]){x, y}, (const int64_t[]){1, 1}, (float *)out + begin);
    } else {
      memcpy((float *)out + begin, result, (size_t)size * sizeof(float));
    }
  }
}
#else
#define power_float32_loop any_power_float32_loop
#endif
TF_BROADCAST_KERNEL(power_float32, 2)
TF_HALF_LOOPS2(power)

/* X(op, type, T, expression): one loop and kernel each. */
#define ALL(X)                                                                                                       \
  X(power, float64, double, power_float64_of(x, y))                                                                  \
  X(atan2, float32, float, angle_float32(x, y))                                                                      \
  X(atan2, float64, double, angle_float64(x, y))                                                                     \
  X(next_after, float32, float, tf_next_after_f32(x, y))                                                             \
  X(next_after, float64, double, tf_next_after_f64(x, y))
#define HALVES(X) X(atan2)

#define DEFINE(op, type, T, expression)                                                                              \
  TF_COSTLY_LOOP2(op##_##type, T, T, expression) TF_BROADCAST_KERNEL(op##_##type, 2)
#define DEFINE_HALVES(op)                                                                                            \
  TF_HALF_LOOPS2(op) TF_BROADCAST_KERNEL(op##_float16, 2) TF_BROADCAST_KERNEL(op##_bfloat16, 2)
#define LIST(op, type, T, expression) TF_ENTRY(op##_##type),
#define LIST_HALVES(op) TF_ENTRY(op##_float16), TF_ENTRY(op##_bfloat16),

ALL(DEFINE)
HALVES(DEFINE_HALVES)

TF_BROADCAST_KERNEL(power_float16, 2)
TF_BROADCAST_KERNEL(power_bfloat16, 2)

TF_TABLE(binary_power) = {ALL(LIST) HALVES(LIST_HALVES) TF_ENTRY(power_float32), LIST_HALVES(power) TF_END};
