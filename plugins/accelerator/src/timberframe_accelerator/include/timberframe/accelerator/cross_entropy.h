/* Cross entropy after a softmax, and its gradient, for each row. T, PRECISION, EACH, HELD, ONLINE: see logits.h.
 * TLABELS: dtype of the numbers of classes that are the labels; where it is not defined, each row has a probability for
 * each class. */
#include <timberframe/accelerator/logits.h>

#ifdef TLABELS

/* Reason 1: label {0} of row {1} is not in [0, {2}); the row's results are then 0. */
TF_KERNEL tf_cross_entropy(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const TF_STORAGE(TLABELS) *labels,
                           TF_GLOBAL TF_STORAGE(T) *loss, TF_GLOBAL TF_STORAGE(T) *gradient, TF_GLOBAL int64_t *status,
                           int64_t node, tf_index rows, tf_index classes) {
  TF_ROW_KERNEL
  TF_EACH_LINE(row, rows) {
    const tf_index begin = row * classes;
    const int64_t label = TF_LOAD(TLABELS, labels, row);
    const int32_t good = label >= 0 && label < classes;
    if (!good && lane == 0) tf_report(status, node, 1, label, row, classes);
    TF_SUM_ROW(x, begin, 1, classes)
    const value total = TF_FUNCTION(log)(sum);
    TF_EACH_LOGIT(c, classes) {
      const value log = TF_LOGIT(x, begin, c, 1) - top - total;
      TF_STORE(T, gradient, begin + c, good ? TF_FUNCTION(exp)(log) - (value)(c == label) : 0);
      if (c == label) TF_STORE(T, loss, row, -log);
    }
    if (!good && lane == 0) TF_STORE(T, loss, row, 0);
  }
}

#else

TF_KERNEL tf_cross_entropy(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const TF_STORAGE(T) *labels,
                           TF_GLOBAL TF_STORAGE(T) *loss, TF_GLOBAL TF_STORAGE(T) *gradient, tf_index rows,
                           tf_index classes, tf_index row_step, tf_index step, tf_index label_row_step,
                           tf_index label_step) { /* strides by row and class, 0 where a dimension is broadcast */
  TF_ROW_KERNEL
  TF_EACH_LINE(row, rows) {
    const tf_index begin = row * row_step, first_label = row * label_row_step;
    TF_SUM_ROW(x, begin, step, classes)
    const value total = TF_FUNCTION(log)(sum);
    value mine = 0;
    TF_EACH_LOGIT(c, classes) {
      const value log = TF_LOGIT(x, begin, c, step) - top - total;
      const value label = TF_LOAD(T, labels, first_label + c * label_step);
      mine += label != 0 ? log * label : 0;
      TF_STORE(T, gradient, row * classes + c, TF_FUNCTION(exp)(log) - label);
    }
    mine = tf_row_sum(mine);
    if (lane == 0) TF_STORE(T, loss, row, 0 - mine);
  }
}

#endif
