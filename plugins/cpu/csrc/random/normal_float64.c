/* Standard normals of float64. */
#include <timberframe/math/functions_float64.h>

#define NORMAL_REAL double
#define NORMAL_NUMBERS 2
#define NORMALS normals_float64
#include "common/table.h"
static inline void normals_float64(const uint32_t *bits, double *out, int64_t count);

#include "normal.inc"

static inline void normals_float64(const uint32_t *bits, double *out, int64_t count) {
  for (int64_t i = 0; i < count / 2; i++) {
    const double u = uniform_float64(bits[4 * i], bits[4 * i + 1]);
    const double angle = 6.283185307179586 * uniform_float64(bits[4 * i + 2], bits[4 * i + 3]);
    const double radius = __builtin_sqrt(-2.0 * tf_log_f64(u < SMALLEST_UNIFORM ? SMALLEST_UNIFORM : u));
    int64_t quadrant;
    const double r = tf_reduce_half_pi_f64(angle, &quadrant);
    out[2 * i] = tf_sin_quadrant_f64(r, quadrant) * radius;
    out[2 * i + 1] = tf_sin_quadrant_f64(r, quadrant + 1) * radius;
  }
}

static inline void normal_float64_convert(const uint32_t *bits, double *out, int64_t count, const int64_t *parameters) {
  (void)parameters;
  normals_float64(bits, out, count);
}

#define AS_IT_IS(x) (x)
FILL(random_normal_float64, double, 2, normal_float64_convert)
TRUNCATED(random_truncated_float64, double, AS_IT_IS)

TF_TABLE(random_normal_float64) = {TF_ENTRY(random_normal_float64), TF_ENTRY(random_truncated_float64), TF_END};
