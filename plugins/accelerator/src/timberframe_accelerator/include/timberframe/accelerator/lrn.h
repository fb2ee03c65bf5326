/* Local response normalisation over the channels, the last dimension, and with GRADIENT its gradient. T: the dtype.
 *
 * With N = bias + alpha * (the sum of x^2 over the channels within the radius), y = x N^-beta, and the gradient is
 * dy N^-beta - 2 alpha beta x * (the sum of dy y / N over the same channels). */
#include <timberframe/accelerator/language.h>
#include <timberframe/math/power.h>

#define TF_FIRST(c, radius) ((c) < (radius) ? 0 : (c) - (radius))
#define TF_LAST(c, radius, channels) ((channels) - (c) > (radius) ? (c) + (radius) : (channels) - 1)

static inline float tf_lrn_base(TF_GLOBAL const TF_STORAGE(T) *x, tf_index i, tf_index channels, tf_index radius,
                                float bias, float alpha) {
  const tf_index c = i % channels, last = TF_LAST(c, radius, channels);
  float sum = 0;
  for (tf_index k = TF_FIRST(c, radius); k <= last; k++) {
    const float v = TF_LOAD(T, x, i - c + k);
    sum += v * v;
  }
  return bias + alpha * sum;
}

#ifdef GRADIENT

/* The terms dy y / N from element 0 of `terms` on, and dy N^-beta from element `size` on. */
TF_KERNEL tf_lrn_terms(TF_GLOBAL const TF_STORAGE(T) *dy, TF_GLOBAL const TF_STORAGE(T) *x,
                       TF_GLOBAL const TF_STORAGE(T) *y, TF_GLOBAL float *terms, tf_index size, tf_index channels,
                       tf_index radius, float bias, float alpha, float beta) {
  TF_EACH(i, size) {
    const float base = tf_lrn_base(x, i, channels, radius, bias, alpha), slope = TF_LOAD(T, dy, i);
    terms[i] = slope * TF_LOAD(T, y, i) / base;
    terms[size + i] = slope * power_float32_of(base, -beta);
  }
}

TF_KERNEL tf_lrn(TF_GLOBAL const float *terms, TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL TF_STORAGE(T) *dx,
                 tf_index size, tf_index channels, tf_index radius, float bias, float alpha, float beta) {
  TF_EACH(i, size) {
    const tf_index c = i % channels, last = TF_LAST(c, radius, channels);
    float sum = 0;
    for (tf_index k = TF_FIRST(c, radius); k <= last; k++) sum += terms[i - c + k];
    TF_STORE(T, dx, i, terms[size + i] - 2 * alpha * beta * TF_LOAD(T, x, i) * sum);
  }
}

#else

TF_KERNEL tf_lrn(TF_GLOBAL const TF_STORAGE(T) *x, TF_GLOBAL TF_STORAGE(T) *y, tf_index size, tf_index channels,
                 tf_index radius, float bias, float alpha, float beta) {
  TF_EACH(i, size) {
    const float base = tf_lrn_base(x, i, channels, radius, bias, alpha);
    TF_STORE(T, y, i, TF_LOAD(T, x, i) * power_float32_of(base, -beta));
  }
}

#endif
