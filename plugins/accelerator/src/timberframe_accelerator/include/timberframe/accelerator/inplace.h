/* InplaceUpdate, InplaceAdd and InplaceSub. T: dtype (of integers the unsigned one); MODE: 0 replaces, 1 adds, 2
 * subtracts.
 *
 * Each element goes through all rows that are changed, in their order, and is rounded after each. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_change_rows(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL const int32_t *numbers,
                         TF_GLOBAL const TF_STORAGE(T) *values, TF_GLOBAL TF_STORAGE(T) *out, tf_index count,
                         tf_index inner, int32_t rows, tf_index changes) {
  TF_EACH(i, count) {
    const tf_index row = i / inner, at = i - row * inner;
    out[i] = in[i];
    for (tf_index k = 0; k < changes; k++) {
      const int32_t number = numbers[k] % rows;
      if ((number < 0 ? number + rows : number) != row) continue;
#if MODE == 0
      out[i] = values[k * inner + at];
#elif MODE == 1
      TF_STORE(T, out, i, TF_LOAD(T, out, i) + TF_LOAD(T, values, k * inner + at));
#else
      TF_STORE(T, out, i, TF_LOAD(T, out, i) - TF_LOAD(T, values, k * inner + at));
#endif
    }
  }
}
