/* Prod, EuclideanNorm and L2Loss of the floating dtypes. */
#include <math.h>

#include "reduce/reducer.h"

#define SQUARE(x) ((x) * (x))
#define SQUARE_FLOAT16(x) SQUARE(tf_float32_from_float16(x))
#define SQUARE_BFLOAT16(x) SQUARE(tf_float32_from_bfloat16(x))
#define ROOT_FLOAT(a, n) sqrtf(a)
#define ROOT_DOUBLE(a, n) sqrt(a)
#define ROOT_FLOAT16(a, n) tf_float16_from_float32(sqrtf(a))
#define ROOT_BFLOAT16(a, n) tf_bfloat16_from_float32(sqrtf(a))
#define HALF(a, n) ((a) / 2)
#define HALF_FLOAT16(a, n) tf_float16_from_float32((a) / 2)
#define HALF_BFLOAT16(a, n) tf_bfloat16_from_float32((a) / 2)

#define FLOATS(name, ELEMENT, ACCUMULATOR, load, square, finish, root, half, vector, fetch)                         \
  static inline vector##_vector name##_square(const ELEMENT *x) {                                                   \
    const vector##_vector v = fetch(x);                                                                             \
    return v * v;                                                                                                   \
  }                                                                                                                 \
  VECTOR_REDUCER(prod_##name, ELEMENT, ACCUMULATOR, ELEMENT, 1, load, MULTIPLY, finish, vector, fetch,              \
                 VECTOR_MULTIPLY)                                                                                   \
  VECTOR_REDUCER(euclidean_norm_##name, ELEMENT, ACCUMULATOR, ELEMENT, 0, square, ADD, root, vector, name##_square, \
                 VECTOR_ADD)                                                                                        \
  REDUCER_KERNEL(l2_loss_##name, euclidean_norm_##name, ELEMENT, ACCUMULATOR, ELEMENT, half)

FLOATS(float32, float, float, AS_IT_IS, SQUARE, ONLY, ROOT_FLOAT, HALF, float32, float32_load)
FLOATS(float64, double, double, AS_IT_IS, SQUARE, ONLY, ROOT_DOUBLE, HALF, float64, float64_load)
FLOATS(float16, tf_float16, float, FROM_FLOAT16, SQUARE_FLOAT16, TO_FLOAT16, ROOT_FLOAT16, HALF_FLOAT16, float32,
       float16_fetch)
FLOATS(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, SQUARE_BFLOAT16, TO_BFLOAT16, ROOT_BFLOAT16, HALF_BFLOAT16, float32,
       bfloat16_fetch)

#define ENTRIES(name) TF_ENTRY(prod_##name), TF_ENTRY(euclidean_norm_##name), TF_ENTRY(l2_loss_##name)
TF_TABLE(reduce_product) = {ENTRIES(float32), ENTRIES(float64), ENTRIES(float16), ENTRIES(bfloat16), TF_END};
