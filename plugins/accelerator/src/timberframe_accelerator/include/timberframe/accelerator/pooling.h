/* MaxPool and AvgPool of images and volumes. T: dtype; LOWEST: the smallest finite T. */
#include <timberframe/accelerator/windows.h>

/* A comparison with NaN is false, so NaN never replaces a number. */
TF_KERNEL tf_max_pool(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows, WINDOWS) {
  EACH_ROW {
    WINDOW_ROW;
    COVERED_ROWS;
    EACH_LANE(OUT) {
      LANE
      TF_VALUE(T) most = LOWEST;
      EACH_COVERED(i, j, k) {
        const TF_VALUE(T) v = TF_LOAD(T, in, ELEMENT_AT(i, j, k));
        most = v > most ? v : most;
      }
      TF_STORE(T, out, RESULT(OUT), most);
    }
  }
}

/* Only positions inside count; a window wholly outside gives zero. */
TF_KERNEL tf_avg_pool(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows, WINDOWS) {
  EACH_ROW {
    WINDOW_ROW;
    COVERED_ROWS;
    const tf_index inside = tf_most(end0 - first0, 0) * tf_most(end1 - first1, 0);
    EACH_LANE(OUT) {
      LANE
      TF_VALUE(T) sum = 0;
      EACH_COVERED(i, j, k) sum += TF_LOAD(T, in, ELEMENT_AT(i, j, k));
      const tf_index whole = inside * tf_most(EXTENT(2, x), 0);
      TF_STORE(T, out, RESULT(OUT), sum / (TF_VALUE(T))tf_most(whole, 1));
    }
  }
}
