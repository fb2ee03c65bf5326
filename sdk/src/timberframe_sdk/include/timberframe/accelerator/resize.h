/* Images of another size: each element is a weighted sum over some rows and columns of the source. T, OUT: dtypes of the
 * source and of the result; SUM: dtype that is computed in.
 *
 * The rows of result row y are down[down[y]] to down[down[y + 1]] (without the last), their weights stand at the same
 * places of down_weights; columns likewise. */
#include <timberframe/accelerator/language.h>

TF_KERNEL tf_resize(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(OUT) *out, tf_index count,
                    TF_GLOBAL const int32_t *down, TF_GLOBAL const TF_VALUE(SUM) *down_weights,
                    TF_GLOBAL const int32_t *across, TF_GLOBAL const TF_VALUE(SUM) *across_weights, tf_index height,
                    tf_index width, tf_index channels, tf_index out_height, tf_index out_width) {
  TF_EACH(i, count) {
    const tf_index pixel = i / channels, c = i - pixel * channels, row = pixel / out_width, x = pixel - row * out_width;
    const tf_index image = row / out_height, y = row - image * out_height;
    const int32_t first = across[x], end = across[x + 1];
    TF_VALUE(SUM) sum = 0;
    for (int32_t j = down[y]; j < down[y + 1]; j++) {
      const tf_index line = ((image * height + down[j]) * width) * channels + c;
      TF_VALUE(SUM) part = 0;
      for (int32_t k = first; k < end; k++)
        part += across_weights[k] * (TF_VALUE(SUM))TF_LOAD(T, in, line + across[k] * channels);
      sum += down_weights[j] * part;
    }
    TF_STORE(OUT, out, i, (TF_VALUE(OUT))sum);
  }
}

/* Every weight is one, as in the gradient of taking the nearest pixel: integers are added as such. */
TF_KERNEL tf_resize_whole(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(OUT) *out, tf_index count,
                          TF_GLOBAL const int32_t *down, TF_GLOBAL const int32_t *across, tf_index height,
                          tf_index width, tf_index channels, tf_index out_height, tf_index out_width) {
  TF_EACH(i, count) {
    const tf_index pixel = i / channels, c = i - pixel * channels, row = pixel / out_width, x = pixel - row * out_width;
    const tf_index image = row / out_height, y = row - image * out_height;
    TF_VALUE(SUM) sum = 0;
    for (int32_t j = down[y]; j < down[y + 1]; j++)
      for (int32_t k = across[x]; k < across[x + 1]; k++)
        sum += TF_LOAD(T, in, ((image * height + down[j]) * width + across[k]) * channels + c);
    TF_STORE(OUT, out, i, (TF_VALUE(OUT))sum);
  }
}

/* One pixel of the source each: rows[y] and columns[x]. T: unsigned integer of an element's bytes. */
TF_KERNEL tf_resize_nearest(TF_GLOBAL const TF_STORAGE(T) *in, TF_GLOBAL TF_STORAGE(OUT) *out, tf_index count,
                            TF_GLOBAL const int32_t *rows, TF_GLOBAL const int32_t *columns, tf_index height,
                            tf_index width, tf_index channels, tf_index out_height, tf_index out_width) {
  TF_EACH(i, count) {
    const tf_index pixel = i / channels, c = i - pixel * channels, row = pixel / out_width, x = pixel - row * out_width;
    const tf_index image = row / out_height, y = row - image * out_height;
    out[i] = in[((image * height + rows[y]) * width + columns[x]) * channels + c];
  }
}
