/* The next float on the way from x to y, by its bits, which count up with the magnitude. */
#ifndef TIMBERFRAME_MATH_NEIGHBOUR_H
#define TIMBERFRAME_MATH_NEIGHBOUR_H

#include <timberframe/math/bits.h>

#define TF_NEXT_AFTER(width, T, U, S)                                                                                \
  static inline T tf_next_after_f##width(T x, T y) {                                                                 \
    const U bits = (U)tf_int_of_f##width(x), away = bits + 1, back = bits - 1;                                       \
    U moved = (x < y) == !(bits >> (width - 1)) ? away : back;                                                       \
    moved = x == 0 ? (U)(y < 0) << (width - 1) | 1 : moved;                                                          \
    return x != x || y != y ? x + y : x == y ? y : tf_of_int_f##width((S)moved);                                     \
  }
TF_NEXT_AFTER(32, float, uint32_t, int32_t)
#ifndef TF_NO_FLOAT64
TF_NEXT_AFTER(64, double, uint64_t, int64_t)
#endif

#endif
