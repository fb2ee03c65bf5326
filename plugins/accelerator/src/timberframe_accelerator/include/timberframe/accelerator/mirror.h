/* MirrorPadGrad: each element is the sum of the input's at its own position and at those that mirror it. T: dtype.
 *
 * dimensions: for each of `rank` the output's size, padding before and after, and the input's stride; `unit` elements
 * after the last stay together. edge: 1 where the edge itself is not mirrored. */
#include <timberframe/accelerator/language.h>

#define MOST_DIMENSIONS 8

TF_KERNEL tf_mirror_pad_grad(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(T) *out, tf_index count,
                             TF_GLOBAL const tf_index *TF_RESTRICT dimensions, int32_t rank, tf_index unit,
                             tf_index edge) {
  TF_EACH(i, count) {
    tf_index source[MOST_DIMENSIONS][3], left = i / unit;
    int32_t found[MOST_DIMENSIONS], total = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
      TF_GLOBAL const tf_index *dim = dimensions + 4 * d;
      const tf_index size = dim[0], before = dim[1], after = dim[2], rest = left / size, at = left - rest * size;
      int32_t n = 1;
      source[d][0] = (before + at) * dim[3];
      if (at >= edge && at < before + edge) source[d][n++] = (before - 1 + edge - at) * dim[3];
      const tf_index back = size - 1 - edge - at;
      if (back >= 0 && back < after) source[d][n++] = (before + size + back) * dim[3];
      found[d] = n;
      total *= n;
      left = rest;
    }
    TF_VALUE(T) sum = 0;
    for (int32_t k = 0; k < total; k++) {
      tf_index from = i % unit;
      int32_t choice = k;
      for (int32_t d = 0; d < rank; d++) {
        from += source[d][choice % found[d]];
        choice /= found[d];
      }
      sum += TF_LOAD(T, in, from);
    }
    TF_STORE(T, out, i, sum);
  }
}
