/* Standard normal numbers by Box and Muller's method, in pairs. */
#ifndef TIMBERFRAME_RANDOM_NORMAL_H
#define TIMBERFRAME_RANDOM_NORMAL_H

#include <timberframe/random/uniform.h>

#define NORMAL_TRUNCATION 2         /* a truncated normal is smaller than this */
#define NORMAL_SAMPLES_PER_OUTPUT 256 /* numbers that each truncated normal has to choose from */
#define NORMAL_LEAST_UNIFORM 1.0e-7 /* smaller ones are taken for this before the logarithm */

/* The angle is rounded once: its error counts in full where the sine is near 0. */
static inline float normal_angle_float32(float turns) {
#ifndef TF_NO_FLOAT64
  return (float)(6.283185307179586 * (double)turns);
#else
  return tf_fused_f32(turns, 0x1.921fb6p+2f, turns * -0x1.777a5cp-23f);
#endif
}

#endif
