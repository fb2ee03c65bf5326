/* MaxPool and AvgPool of images and volumes. T: dtype; LOWEST: the smallest finite T. */
#include <timberframe/accelerator/windows.h>

/* A comparison with NaN is false, so NaN never replaces a number. */
TF_KERNEL tf_max_pool(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, tf_index count, WINDOWS) {
  TF_EACH(n, count) {
    FIND_WINDOW(n);
    COVERED(0, z);
    COVERED(1, y);
    COVERED(2, x);
    TF_VALUE(T) most = LOWEST;
    EACH_OF(i, j, k) {
      const TF_VALUE(T) v = TF_LOAD(T, in, ELEMENT_AT(i, j, k));
      most = v > most ? v : most;
    }
    TF_STORE(T, out, n, most);
  }
}

/* Only positions inside count; a window wholly outside gives zero. */
TF_KERNEL tf_avg_pool(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, tf_index count, WINDOWS) {
  TF_EACH(n, count) {
    FIND_WINDOW(n);
    COVERED(0, z);
    COVERED(1, y);
    COVERED(2, x);
    TF_VALUE(T) sum = 0;
    EACH_OF(i, j, k) sum += TF_LOAD(T, in, ELEMENT_AT(i, j, k));
    const tf_index inside = tf_most(end0 - first0, 0) * tf_most(end1 - first1, 0) * tf_most(end2 - first2, 0);
    TF_STORE(T, out, n, sum / (TF_VALUE(T))tf_most(inside, 1));
  }
}
