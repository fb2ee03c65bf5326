/* Softmax, and with LOGARITHM its logarithm. T, PRECISION, EACH, HELD, ONLINE: see logits.h. */
#ifndef LOGARITHM
#define EXPONENTIALS
#endif
#include <timberframe/accelerator/logits.h>

TF_KERNEL tf_softmax(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows, tf_index classes) {
  TF_ROW_KERNEL
  TF_EACH_LINE(row, rows) {
    const tf_index begin = row * classes;
    TF_SUM_ROW(x, begin, 1, classes)
#ifdef LOGARITHM
    const value log = TF_FUNCTION(log)(sum);
    TF_EACH_LOGIT(c, classes) TF_STORE(T, out, begin + c, TF_LOGIT(x, begin, c, 1) - top - log);
#else
    TF_EACH_LOGIT(c, classes) TF_STORE(T, out, begin + c, TF_EXPONENTIAL(x, begin, c, 1) / sum);
#endif
  }
}
