/* Standard normals of float64. */
#include <timberframe/random/normal_float64.h>

#define NORMAL_REAL double
#define NORMAL_NUMBERS 2
#define NORMALS normals_float64
#include "common/table.h"
static inline void normals_float64(const uint32_t *bits, double *out, int64_t count);

#include "normal.inc"

static inline void normals_float64(const uint32_t *bits, double *out, int64_t count) {
  for (int64_t i = 0; i < count / 2; i++) {
    normal_pair_float64(bits + 4 * i, out + 2 * i);
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
