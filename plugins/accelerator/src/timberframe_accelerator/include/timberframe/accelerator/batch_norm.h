/* FusedBatchNorm, and with GRADIENT its gradient, of x [outer, channels, inner]; the sums over outer and inner are made
 * before. T: dtype of x. What belongs to channels is float32.
 *
 * tf_factors prepares the channels, tf_elements goes over rows of `width` elements: all channels of a position where
 * inner is 1, else one channel. */
#include <timberframe/accelerator/language.h>

#define TF_EACH_OF_ROW(column, width) \
  for (tf_index column = (tf_index)tf_global_id(0); column < (width); column += (tf_index)tf_global_size(0))

#ifdef GRADIENT

/* With f = 1 / sqrt(variance + epsilon): weighted, the sum of dy (x - mean), becomes the gradient of scale; factors are
 * scale f, slopes f^2 weighted / count, and means plain / count. Without training both latter are 0. */
TF_KERNEL tf_factors(TF_GLOBAL const float *scale, TF_GLOBAL const float *variance, TF_GLOBAL float *weighted,
                     TF_GLOBAL const float *plain, TF_GLOBAL float *work, tf_index start, tf_index channels,
                     float epsilon, float count, int32_t training) {
  TF_EACH(c, channels) {
    const float f = 1.0f / tf_root_f32(variance[c] + epsilon), sum = weighted[c];
    weighted[c] = sum * f;
    work[start + c] = scale[c] * f;
    work[start + channels + c] = training ? f * f * sum / count : 0;
    work[start + 2 * channels + c] = training ? plain[c] / count : 0;
  }
}

TF_KERNEL tf_elements(TF_GLOBAL const TF_STORAGE(T) *dy, TF_GLOBAL const TF_STORAGE(T) *x,
                      TF_GLOBAL const float *centers, TF_GLOBAL TF_STORAGE(T) *dx, TF_GLOBAL const float *work,
                      tf_index start, tf_index rows, tf_index width, tf_index channels, int32_t by_column) {
  TF_EACH_OF_ROW(column, width) {
    TF_EACH_ROW(row, rows) {
      const tf_index c = by_column ? column : row % channels, i = row * width + column;
      const float rest = (TF_LOAD(T, x, i) - centers[c]) * work[start + channels + c] + work[start + 2 * channels + c];
      TF_STORE(T, dx, i, work[start + c] * (TF_LOAD(T, dy, i) - rest));
    }
  }
}

#else

/* In training, centers and spreads are the batch's mean and variance, without it they are made equal to `mean` and
 * `variance`. Factors are scale / sqrt(spread + epsilon). */
TF_KERNEL tf_factors(TF_GLOBAL const float *scale, TF_GLOBAL const float *mean, TF_GLOBAL const float *variance,
                     TF_GLOBAL float *running_mean, TF_GLOBAL float *running_variance, TF_GLOBAL float *centers,
                     TF_GLOBAL float *spreads, TF_GLOBAL float *work, tf_index start, tf_index channels, float epsilon,
                     float blend, float bessel, int32_t training, int32_t empty) {
  TF_EACH(c, channels) {
    const float center = training ? centers[c] : mean[c], spread = training ? spreads[c] : variance[c];
    float new_mean = center, new_variance = training ? spread * bessel : spread;
    if (training && blend != 1) {
      new_mean = (1 - blend) * mean[c] + blend * center;
      new_variance = (1 - blend) * variance[c] + blend * new_variance;
    }
    running_mean[c] = empty ? TF_NAN32 : new_mean;
    running_variance[c] = empty ? TF_NAN32 : new_variance;
    centers[c] = empty ? 0 : center;
    spreads[c] = empty ? 0 : spread;
    work[start + c] = scale[c] / tf_root_f32(spread + epsilon);
  }
}

TF_KERNEL tf_elements(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL const float *offset, TF_GLOBAL const float *centers,
                      TF_GLOBAL TF_STORAGE(T) *y, TF_GLOBAL const float *work, tf_index start, tf_index rows,
                      tf_index width, tf_index channels, int32_t by_column) {
  TF_EACH_OF_ROW(column, width) {
    TF_EACH_ROW(row, rows) {
      const tf_index c = by_column ? column : row % channels, i = row * width + column;
      TF_STORE(T, y, i, (TF_LOAD(T, x, i) - centers[c]) * work[start + c] + offset[c]);
    }
  }
}

#endif
