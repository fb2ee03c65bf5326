/* Softmax and LogSoftmax of float32, float16 and bfloat16. */
#include "common/table.h"

#include <timberframe/math/fma.h>
#include "common/half.h"
#include "common/lanes.h"
#include <timberframe/math/precision_float32.h>

#include <timberframe/math/exponential.h>

enum { SHORT_LANES = TF_LANES32 };

#include "softmax/softmax.h"

SOFTMAX_ROW(float32, float, COPY_ELEMENTS, COPY_ELEMENTS, tf_load_lanes32, tf_store_lanes32, 1)
SOFTMAX_ROW(float16, tf_float16, tf_float32_from_float16_n, tf_float16_from_float32_n, tf_float32_from_float16_n,
            tf_float16_from_float32_n, 0)
SOFTMAX_ROW(bfloat16, tf_bfloat16, tf_float32_from_bfloat16_n, tf_bfloat16_from_float32_n, tf_float32_from_bfloat16_n,
            tf_bfloat16_from_float32_n, 0)

TF_TABLE(softmax_float32) = {
  TF_ENTRY(softmax_float32),     TF_ENTRY(softmax_float16),     TF_ENTRY(softmax_bfloat16),
  TF_ENTRY(log_softmax_float32), TF_ENTRY(log_softmax_float16), TF_ENTRY(log_softmax_bfloat16), TF_END,
};
