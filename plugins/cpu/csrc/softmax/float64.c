/* Softmax and LogSoftmax of float64. */
#include "common/table.h"

#include <timberframe/math/fma.h>
#include "common/lanes.h"
#include <timberframe/math/precision_float64.h>

#include <timberframe/math/exponential.h>

enum { SHORT_LANES = TF_LANES64 };

#include "softmax/softmax.h"

SOFTMAX_ROW(float64, double, COPY_ELEMENTS, COPY_ELEMENTS, tf_load_lanes64, tf_store_lanes64, 1)

TF_TABLE(softmax_float64) = {TF_ENTRY(softmax_float64), TF_ENTRY(log_softmax_float64), TF_END};
