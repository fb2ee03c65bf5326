/* Max and Min of the dtypes that need speed (plain.c has the others), All and Any. A NaN anywhere makes the result NaN;
 * bool is one byte of 0 or 1. */
#include <math.h>

#include "reduce/reducer.h"

#define BOTH(a, b) ((a) & (b))
#define EITHER(a, b) ((a) | (b))

VECTOR_FLOAT_EXTREMES
VECTOR_EXTREMES(int32, int32_t)
VECTOR_EXTREMES(int64, int64_t)
VECTOR_EXTREMES(uint8, uint8_t)

#define FLOATS(name, ELEMENT, ACCUMULATOR, load, finish, vector, fetch)                                             \
  VECTOR_REDUCER(max_##name, ELEMENT, ACCUMULATOR, ELEMENT, -(ACCUMULATOR)INFINITY, load, max_nan_##vector, finish, \
                 vector, fetch, vector##_max_nan)                                                                   \
  VECTOR_REDUCER(min_##name, ELEMENT, ACCUMULATOR, ELEMENT, (ACCUMULATOR)INFINITY, load, min_nan_##vector, finish,  \
                 vector, fetch, vector##_min_nan)
#define INTEGERS(name, type, low, high)                                                                     \
  VECTOR_REDUCER(max_##name, type, type, type, low, AS_IT_IS, MAXIMUM, ONLY, name, name##_load, name##_max) \
  VECTOR_REDUCER(min_##name, type, type, type, high, AS_IT_IS, MINIMUM, ONLY, name, name##_load, name##_min)

FLOATS(float32, float, float, AS_IT_IS, ONLY, float32, float32_load)
FLOATS(float64, double, double, AS_IT_IS, ONLY, float64, float64_load)
FLOATS(float16, tf_float16, float, FROM_FLOAT16, TO_FLOAT16, float32, float16_fetch)
FLOATS(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, TO_BFLOAT16, float32, bfloat16_fetch)
INTEGERS(int32, int32_t, INT32_MIN, INT32_MAX)
INTEGERS(int64, int64_t, INT64_MIN, INT64_MAX)
INTEGERS(uint8, uint8_t, 0, UINT8_MAX)
VECTOR_REDUCER(all_bool, uint8_t, uint8_t, uint8_t, 1, AS_IT_IS, BOTH, ONLY, uint8, uint8_load, VECTOR_AND)
VECTOR_REDUCER(any_bool, uint8_t, uint8_t, uint8_t, 0, AS_IT_IS, EITHER, ONLY, uint8, uint8_load, VECTOR_OR)

#define ENTRIES(name) TF_ENTRY(max_##name), TF_ENTRY(min_##name)
TF_TABLE(reduce_extremes) = {
  ENTRIES(float32), ENTRIES(float64), ENTRIES(float16),   ENTRIES(bfloat16),  ENTRIES(int32),
  ENTRIES(int64),   ENTRIES(uint8),   TF_ENTRY(all_bool), TF_ENTRY(any_bool), TF_END,
};
