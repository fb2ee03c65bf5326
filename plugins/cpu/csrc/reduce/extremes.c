/* Max and Min of the dtypes that need speed (plain.c has the others), All and Any. A NaN anywhere makes the result NaN;
 * bool is one byte of 0 or 1. */
#include <math.h>

#include "reduce/elements.h"
#include "reduce/reducer.h"

#define BOTH(a, b) ((a) & (b))
#define EITHER(a, b) ((a) | (b))

#define FLOATS(name, ELEMENT, ACCUMULATOR, load, finish)                                                 \
  REDUCER(max_##name, ELEMENT, ACCUMULATOR, ELEMENT, -(ACCUMULATOR)INFINITY, load, MAXIMUM_NAN, finish)  \
  REDUCER(min_##name, ELEMENT, ACCUMULATOR, ELEMENT, (ACCUMULATOR)INFINITY, load, MINIMUM_NAN, finish)

FLOATS(float32, float, float, AS_IT_IS, ONLY)
FLOATS(float64, double, double, AS_IT_IS, ONLY)
FLOATS(float16, tf_float16, float, FROM_FLOAT16, TO_FLOAT16)
FLOATS(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, TO_BFLOAT16)
INTEGER_EXTREMES(int32, int32_t, INT32_MIN, INT32_MAX)
INTEGER_EXTREMES(int64, int64_t, INT64_MIN, INT64_MAX)
INTEGER_EXTREMES(uint8, uint8_t, 0, UINT8_MAX)
REDUCER(all_bool, uint8_t, uint8_t, uint8_t, 1, AS_IT_IS, BOTH, ONLY)
REDUCER(any_bool, uint8_t, uint8_t, uint8_t, 0, AS_IT_IS, EITHER, ONLY)

#define ENTRIES(name) TF_ENTRY(max_##name), TF_ENTRY(min_##name)
TF_TABLE(reduce_extremes) = {
  ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), ENTRIES(int32), ENTRIES(int64), ENTRIES(uint8),
  TF_ENTRY(all_bool), TF_ENTRY(any_bool), TF_END,
};
