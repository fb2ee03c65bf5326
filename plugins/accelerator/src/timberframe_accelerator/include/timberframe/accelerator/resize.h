/* Images of another size: each element is a weighted sum over some rows and columns of the source. T, OUT: dtypes of
 * the source and of the result; SUM: dtype that is computed in. WIDE: 1 where there are many channels: a launch's first
 * dimension goes over channels and its second over pixels; with 0 they go over the values of a row, and over rows.
 *
 * The rows of result row y are down[down[y]] to down[down[y + 1]] (without the last), their weights stand at the same
 * positions of down_weights. across and across_weights are the same for columns. multiplier, shift: of tf_quotient by
 * the number of channels. */
#include <timberframe/accelerator/language.h>

#include <timberframe/accelerator/division.h>

#define SIZES tf_index rows, tf_index height, tf_index width, tf_index channels, tf_index out_height, \
    tf_index out_width, tf_index multiplier, tf_index shift
#if WIDE
#define EACH_RESULT                                                                             \
  TF_EACH_ROW(row, rows) {                                                                      \
    const tf_index line = row / out_width, x = row - line * out_width, image = line / out_height, \
                   y = line - image * out_height;                                               \
    TF_EACH(c, channels) {                                                                      \
      const tf_index i = row * channels + c;
#else
#define EACH_RESULT                                                                             \
  TF_EACH_ROW(row, rows) {                                                                      \
    const tf_index image = row / out_height, y = row - image * out_height, length = out_width * channels; \
    TF_EACH(at, length) {                                                                       \
      const tf_index i = row * length + at, x = tf_quotient(at, channels, multiplier, shift), c = at - x * channels;
#endif
#define END_RESULT \
  }                \
  }
#define ELEMENT_INDEX(j, k) (((image * height + (j)) * width + (k)) * channels + c)

TF_KERNEL tf_resize(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(OUT) *out,
                    TF_GLOBAL const int32_t *TF_RESTRICT down, TF_GLOBAL const TF_VALUE(SUM) *TF_RESTRICT down_weights,
                    TF_GLOBAL const int32_t *TF_RESTRICT across,
                    TF_GLOBAL const TF_VALUE(SUM) *TF_RESTRICT across_weights, SIZES) {
  EACH_RESULT
  const int32_t first = across[x], end = across[x + 1];
  TF_VALUE(SUM) sum = 0;
  for (int32_t j = down[y]; j < down[y + 1]; j++) {
    TF_VALUE(SUM) part = 0;
    for (int32_t k = first; k < end; k++)
      part += across_weights[k] * (TF_VALUE(SUM))TF_LOAD(T, in, ELEMENT_INDEX(down[j], across[k]));
    sum += down_weights[j] * part;
  }
  TF_STORE(OUT, out, i, (TF_VALUE(OUT))sum);
  END_RESULT
}

/* Every weight is one, as in the gradient of taking the nearest pixel: integers are added as such. */
TF_KERNEL tf_resize_whole(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(OUT) *out,
                          TF_GLOBAL const int32_t *TF_RESTRICT down, TF_GLOBAL const int32_t *TF_RESTRICT across,
                          SIZES) {
  EACH_RESULT
  TF_VALUE(SUM) sum = 0;
  for (int32_t j = down[y]; j < down[y + 1]; j++)
    for (int32_t k = across[x]; k < across[x + 1]; k++) sum += TF_LOAD(T, in, ELEMENT_INDEX(down[j], across[k]));
  TF_STORE(OUT, out, i, (TF_VALUE(OUT))sum);
  END_RESULT
}

/* One pixel of the source each: lines[y] and columns[x]. T: unsigned integer of an element's bytes. */
TF_KERNEL tf_resize_nearest(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(OUT) *out,
                            TF_GLOBAL const int32_t *TF_RESTRICT lines,
                            TF_GLOBAL const int32_t *TF_RESTRICT columns, SIZES) {
  EACH_RESULT
  out[i] = in[ELEMENT_INDEX(lines[y], columns[x])];
  END_RESULT
}
