/* Sum and Mean of the floating dtypes, Sum of wide integers. Unsigned types serve the signed ones too: wrapping addition
 * is the same. float16 and bfloat16 accumulate in float32. */
#include "reduce/elements.h"
#include "reduce/reducer.h"

#define OVER_FLOAT(a, n) ((a) / (float)(n))
#define OVER_DOUBLE(a, n) ((a) / (double)(n))
#define OVER_FLOAT16(a, n) tf_float16_from_float32((a) / (float)(n))
#define OVER_BFLOAT16(a, n) tf_bfloat16_from_float32((a) / (float)(n))

REDUCER(sum_float32, float, float, float, 0.0f, AS_IT_IS, ADD, ONLY)
REDUCER(sum_float64, double, double, double, 0.0, AS_IT_IS, ADD, ONLY)
REDUCER(sum_float16, tf_float16, float, tf_float16, 0.0f, FROM_FLOAT16, ADD, TO_FLOAT16)
REDUCER(sum_bfloat16, tf_bfloat16, float, tf_bfloat16, 0.0f, FROM_BFLOAT16, ADD, TO_BFLOAT16)
REDUCER(sum_int32, uint32_t, uint32_t, uint32_t, 0u, AS_IT_IS, ADD, ONLY)
REDUCER(sum_int64, uint64_t, uint64_t, uint64_t, 0u, AS_IT_IS, ADD, ONLY)
REDUCER_KERNEL(mean_float32, sum_float32, float, float, float, OVER_FLOAT)
REDUCER_KERNEL(mean_float64, sum_float64, double, double, double, OVER_DOUBLE)
REDUCER_KERNEL(mean_float16, sum_float16, tf_float16, float, tf_float16, OVER_FLOAT16)
REDUCER_KERNEL(mean_bfloat16, sum_bfloat16, tf_bfloat16, float, tf_bfloat16, OVER_BFLOAT16)

TF_TABLE(reduce_sum) = {
  TF_ENTRY(sum_float32),  TF_ENTRY(sum_float64),  TF_ENTRY(sum_float16),   TF_ENTRY(sum_bfloat16),
  TF_ENTRY(sum_int32),    TF_ENTRY(sum_int64),    TF_ENTRY(mean_float32),  TF_ENTRY(mean_float64),
  TF_ENTRY(mean_float16), TF_ENTRY(mean_bfloat16), TF_END,
};
