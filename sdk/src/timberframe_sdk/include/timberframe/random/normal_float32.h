/* A pair of standard normals of float32 from two 32-bit numbers. */
#ifndef TIMBERFRAME_RANDOM_NORMAL_FLOAT32_H
#define TIMBERFRAME_RANDOM_NORMAL_FLOAT32_H

#include <timberframe/math/functions_float32.h>
#include <timberframe/random/normal.h>

static inline void normal_pair_float32(const uint32_t *bits, float *out) {
  const float u = uniform_float32(bits[0]), least = (float)NORMAL_LEAST_UNIFORM;
  const float angle = normal_angle_float32(uniform_float32(bits[1]));
  const float radius = tf_root_f32(-2.0f * tf_log_f32(u < least ? least : u));
  int32_t quadrant;
  const float r = tf_reduce_half_pi_f32(angle, &quadrant);
  out[0] = tf_sin_quadrant_f32(r, quadrant) * radius;
  out[1] = tf_sin_quadrant_f32(r, quadrant + 1) * radius;
}

#endif
