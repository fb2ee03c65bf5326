/* The last step of sums whose terms were cut into parts. PART: dtype of the parts, T: of the result. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_add_parts(TF_GLOBAL const TF_STORAGE(PART) *sums, int64_t sums_start, TF_GLOBAL TF_STORAGE(T) *result,
                       int64_t result_start, tf_index count, int32_t parts) {
  TF_EACH(i, count) {
    TF_VALUE(PART) sum = TF_LOAD(PART, sums, sums_start + i);
    for (int32_t part = 1; part < parts; part++) sum += TF_LOAD(PART, sums, sums_start + (int64_t)part * count + i);
    TF_STORE(T, result, result_start + i, (TF_VALUE(T))sum);
  }
}
