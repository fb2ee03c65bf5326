/* Tensors made of a few numbers. T: dtype (of integers the unsigned one, which wraps). */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_range(TF_GLOBAL TF_STORAGE(T) *out, tf_index count, TF_VALUE(T) start, TF_VALUE(T) delta) {
  TF_EACH(i, count) TF_STORE(T, out, i, start + (TF_VALUE(T))i * delta);
}

/* The first and the last element are the numbers themselves, also where the step is infinite. */
TF_KERNEL tf_linspace(TF_GLOBAL const TF_STORAGE(T) *first, TF_GLOBAL const TF_STORAGE(T) *last,
                      TF_GLOBAL TF_STORAGE(T) *out, tf_index count) {
  const TF_VALUE(T) start = TF_LOAD(T, first, 0);
  const TF_VALUE(T) step = count > 1 ? (TF_LOAD(T, last, 0) - start) / (TF_VALUE(T))(count - 1) : 0;
  TF_EACH(i, count) {
    if (i == 0) out[i] = first[0];
    else if (i == count - 1) out[i] = last[0];
    else TF_STORE(T, out, i, start + step * (TF_VALUE(T))i);
  }
}
