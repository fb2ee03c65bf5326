/* A pair of standard normals of float64 from four 32-bit numbers. */
#ifndef TIMBERFRAME_RANDOM_NORMAL_FLOAT64_H
#define TIMBERFRAME_RANDOM_NORMAL_FLOAT64_H

#include <timberframe/math/functions_float64.h>
#include <timberframe/random/normal.h>

static inline void normal_pair_float64(const uint32_t *bits, double *out) {
  const double u = uniform_float64(bits[0], bits[1]), angle = 6.283185307179586 * uniform_float64(bits[2], bits[3]);
  const double radius = tf_root_f64(-2.0 * tf_log_f64(u < NORMAL_LEAST_UNIFORM ? NORMAL_LEAST_UNIFORM : u));
  int64_t quadrant;
  const double r = tf_reduce_half_pi_f64(angle, &quadrant);
  out[0] = tf_sin_quadrant_f64(r, quadrant) * radius;
  out[1] = tf_sin_quadrant_f64(r, quadrant + 1) * radius;
}

#endif
