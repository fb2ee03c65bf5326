/* Sum and Mean of the floating dtypes, Sum of wide integers. Unsigned types serve the signed ones too: wrapping
 * addition is the same. float16 and bfloat16 accumulate in float32. */
#include "reduce/reducer.h"

#define OVER_FLOAT(a, n) ((a) / (float)(n))
#define OVER_DOUBLE(a, n) ((a) / (double)(n))
#define OVER_FLOAT16(a, n) tf_float16_from_float32((a) / (float)(n))
#define OVER_BFLOAT16(a, n) tf_bfloat16_from_float32((a) / (float)(n))

#define SUM(name, ELEMENT, ACCUMULATOR, load, finish, vector, fetch) \
  VECTOR_REDUCER(sum_##name, ELEMENT, ACCUMULATOR, ELEMENT, 0, load, ADD, finish, vector, fetch, VECTOR_ADD)
SUM(float32, float, float, AS_IT_IS, ONLY, float32, float32_load)
SUM(float64, double, double, AS_IT_IS, ONLY, float64, float64_load)
SUM(float16, tf_float16, float, FROM_FLOAT16, TO_FLOAT16, float32, float16_fetch)
SUM(bfloat16, tf_bfloat16, float, FROM_BFLOAT16, TO_BFLOAT16, float32, bfloat16_fetch)
SUM(int32, uint32_t, uint32_t, AS_IT_IS, ONLY, uint32, uint32_load)
SUM(int64, uint64_t, uint64_t, AS_IT_IS, ONLY, uint64, uint64_load)
REDUCER_KERNEL(mean_float32, sum_float32, float, float, float, OVER_FLOAT)
REDUCER_KERNEL(mean_float64, sum_float64, double, double, double, OVER_DOUBLE)
REDUCER_KERNEL(mean_float16, sum_float16, tf_float16, float, tf_float16, OVER_FLOAT16)
REDUCER_KERNEL(mean_bfloat16, sum_bfloat16, tf_bfloat16, float, tf_bfloat16, OVER_BFLOAT16)

TF_TABLE(reduce_sum) = {
  TF_ENTRY(sum_float32),  TF_ENTRY(sum_float64),   TF_ENTRY(sum_float16),  TF_ENTRY(sum_bfloat16),
  TF_ENTRY(sum_int32),    TF_ENTRY(sum_int64),     TF_ENTRY(mean_float32), TF_ENTRY(mean_float64),
  TF_ENTRY(mean_float16), TF_ENTRY(mean_bfloat16), TF_END,
};
