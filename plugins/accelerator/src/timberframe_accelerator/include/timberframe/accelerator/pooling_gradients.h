/* Gradients of pooling. T: dtype; that of sums is unsigned for integers, whose sums wrap.
 *
 * Each element of a gradient gathers what the windows over it have for it, always in the same order. */
#include <timberframe/accelerator/windows.h>

/* Which tap of each window holds its maximum: the first of equal ones, and a NaN only where it comes first. */
TF_KERNEL tf_max_taps(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL int32_t *taps, tf_index rows, WINDOWS) {
  EACH_ROW {
    WINDOW_ROW;
    COVERED_ROWS;
    EACH_LANE(OUT) {
      LANE
      TF_VALUE(T) most = 0;
      int32_t found = -1;
      EACH_COVERED(i, j, k) {
        const TF_VALUE(T) v = TF_LOAD(T, in, ELEMENT_AT(i, j, k));
        const int32_t tap = (int32_t)(((i - begin0) * WINDOW(1) + j - begin1) * WINDOW(2) + k - begin2);
        const int larger = (found < 0) | (v > most); /* choices, no branch: vectors of work-items stay whole */
        most = larger ? v : most;
        found = larger ? tap : found;
      }
      taps[RESULT(OUT)] = found;
    }
  }
}

TF_KERNEL tf_max_pool_grad(TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL const int32_t *taps,
                           TF_GLOBAL TF_STORAGE(T) *out, tf_index rows, WINDOWS) {
  EACH_ROW {
    ELEMENT_ROW;
    COVERING_ROWS;
    EACH_LANE(SIZE) {
      LANE
      TF_VALUE(T) sum = 0;
      EACH_COVERING(i, j, k) {
        const tf_index at = WINDOW_AT(i, j, k);
        const tf_index plane_tap = (position0 - i * STRIDE(0)) * WINDOW(1) + position1 - j * STRIDE(1);
        const tf_index tap = plane_tap * WINDOW(2) + position2 - k * STRIDE(2);
        const TF_VALUE(T) g = TF_LOAD(T, gradient, at);
        sum += taps[at] == (int32_t)tap ? g : 0;
      }
      TF_STORE(T, out, RESULT(SIZE), sum);
    }
  }
}

/* Of volumes: all elements of a window that equal its output get its gradient. */
TF_KERNEL tf_max_pool3d_grad(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL const TF_STORAGE(T) *maxima,
                             TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows,
                             WINDOWS) {
  EACH_ROW {
    ELEMENT_ROW;
    COVERING_ROWS;
    EACH_LANE(SIZE) {
      LANE
      const TF_VALUE(T) own = TF_LOAD(T, in, RESULT(SIZE));
      TF_VALUE(T) sum = 0;
      EACH_COVERING(i, j, k) {
        const tf_index at = WINDOW_AT(i, j, k);
        const TF_VALUE(T) g = TF_LOAD(T, gradient, at);
        sum += TF_LOAD(T, maxima, at) == own ? g : 0;
      }
      TF_STORE(T, out, RESULT(SIZE), sum);
    }
  }
}

/* The gradient at the first element of the window that equals the output; zero where none does. */
TF_KERNEL tf_max_pool_grad_grad(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL const TF_STORAGE(T) *maxima,
                                TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL TF_STORAGE(T) *out,
                                tf_index rows, WINDOWS) {
  EACH_ROW {
    WINDOW_ROW;
    COVERED_ROWS;
    EACH_LANE(OUT) {
      LANE
      const TF_VALUE(T) most = TF_LOAD(T, maxima, RESULT(OUT));
      tf_index found = -1;
      EACH_COVERED(i, j, k) {
        const tf_index at = ELEMENT_AT(i, j, k);
        found = (found < 0) & (TF_LOAD(T, in, at) == most) ? at : found;
      }
      out[RESULT(OUT)] = found < 0 ? 0 : gradient[found];
    }
  }
}

TF_KERNEL tf_avg_pool_grad(TF_GLOBAL const TF_STORAGE(T) *gradient, TF_GLOBAL TF_STORAGE(T) *out, tf_index rows,
                           WINDOWS) {
  EACH_ROW {
    ELEMENT_ROW;
    COVERING_ROWS;
    EACH_LANE(SIZE) {
      LANE
      TF_VALUE(T) sum = 0;
      EACH_COVERING(i, j, k) {
        const TF_VALUE(T) share = 1 / (TF_VALUE(T))(EXTENT(0, i) * EXTENT(1, j) * EXTENT(2, k));
        sum += TF_LOAD(T, gradient, WINDOW_AT(i, j, k)) * share;
      }
      TF_STORE(T, out, RESULT(SIZE), sum);
    }
  }
}
