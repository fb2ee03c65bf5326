/* Rows in a given order. T: unsigned integer of an element's bytes. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_order_rows(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL const int32_t *order,
                        TF_GLOBAL TF_STORAGE(T) *out, tf_index count, tf_index inner) {
  TF_EACH(i, count) {
    const tf_index row = i / inner;
    out[i] = in[(tf_index)order[row] * inner + (i - row * inner)];
  }
}
