/* Softmax, and with LOGARITHM its logarithm. T, PRECISION, EACH: see rows.h. */
#include <timberframe/accelerator/rows.h>

TF_KERNEL tf_softmax(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows, tf_index classes) {
  TF_ROW_KERNEL
  TF_EACH_LINE(row, rows) {
    const tf_index begin = row * classes;
    value top = -TF_INFINITY32, sum = 0;
    TF_EACH_CLASS(c, classes) {
      const value v = TF_LOAD(T, x, begin + c);
      top = v > top ? v : top;
    }
    top = tf_row_maximum(top);
    TF_EACH_CLASS(c, classes) sum += TF_FUNCTION(exp)(TF_LOAD(T, x, begin + c) - top);
    sum = tf_row_sum(sum);
#ifdef LOGARITHM
    const value log = TF_FUNCTION(log)(sum);
    TF_EACH_CLASS(c, classes) TF_STORE(T, out, begin + c, TF_LOAD(T, x, begin + c) - top - log);
#else
    TF_EACH_CLASS(c, classes) {
      TF_STORE(T, out, begin + c, TF_FUNCTION(exp)(TF_LOAD(T, x, begin + c) - top) / sum);
    }
#endif
  }
}
