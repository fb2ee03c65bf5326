/* Reductions of rows that lie one after the other. Macros: those of combining.h. */
#include <timberframe/accelerator/combining.h>

/* Segment s is made of the rows from begins[s] to begins[s + 1]. Each element combines `start` with those of its
 * segment in their order; the sum becomes the mean with `mean`, and `empty` stands where a segment has no row. */
TF_KERNEL tf_segments(TF_GLOBAL const TF_STORAGE(T) *data, TF_GLOBAL TF_STORAGE(T) *out,
                      TF_GLOBAL const tf_index *begins, tf_index size, tf_index inner, int32_t mode, int32_t mean,
                      tf_element start, tf_element empty) {
  TF_EACH(i, size) {
    const tf_index segment = i / inner, column = i - segment * inner, first = begins[segment];
    const tf_index end = begins[segment + 1], rows = end - first;
    tf_element a = rows ? start : empty;
    for (tf_index row = first; row < end; row++) a = tf_combined(a, TF_LOAD(T, data, row * inner + column), mode);
#if defined(SIGNED)
    if (mean && rows) a = (tf_element)((int64_t)a / (int64_t)rows);
#elif defined(INTEGER)
    if (mean && rows) a = (tf_element)((uint64_t)a / (uint64_t)rows);
#else
    if (mean && rows) a = a / (tf_element)rows;
#endif
    TF_STORE(T, out, i, a);
  }
}
