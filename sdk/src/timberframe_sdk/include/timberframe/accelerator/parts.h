/* The last step of sums whose terms were cut into parts. PART: dtype of the parts, T: of the result. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_add_parts(TF_GLOBAL const TF_STORAGE(PART) *sums, TF_GLOBAL TF_STORAGE(T) *result, tf_index count,
                       int32_t parts, int64_t start) {
  TF_EACH(i, count) {
    TF_VALUE(PART) sum = TF_LOAD(PART, sums, start + i);
    for (int32_t part = 1; part < parts; part++) sum += TF_LOAD(PART, sums, start + (int64_t)part * count + i);
    TF_STORE(T, result, i, (TF_VALUE(T))sum);
  }
}
