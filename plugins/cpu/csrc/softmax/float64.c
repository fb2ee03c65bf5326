/* Softmax and LogSoftmax of float64. */
#include "common/table.h"

#include "common/fma.h"
#include "unary/precision_float64.h"

#include "unary/exponential.h"

#include "softmax/softmax.h"

SOFTMAX_ROW(float64, double, COPY_ELEMENTS, COPY_ELEMENTS, 1)

TF_TABLE(softmax_float64) = {TF_ENTRY(softmax_float64), TF_ENTRY(log_softmax_float64), TF_END};
