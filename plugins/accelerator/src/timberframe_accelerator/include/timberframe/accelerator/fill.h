/* Filling with a value. T: unsigned integer of an element's bytes. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_fill(TF_GLOBAL TF_STORAGE(T) *out, TF_STORAGE(T) value, tf_index size) {
  TF_EACH(i, size) out[i] = value;
}
