/* The peak rate of fused multiply-adds: independent accumulators, enough of them to hide the latency and few enough for
 * 16 registers. VECTOR_BYTES: of a register. */
#include <stdint.h>

typedef float lanes __attribute__((vector_size(VECTOR_BYTES)));

enum { ACCUMULATORS = 10, LANES = VECTOR_BYTES / sizeof(float) };

double multiply_add(int64_t count) {
  lanes sum[ACCUMULATORS];
  lanes factor, term;
  for (int k = 0; k < LANES; k++) {
    factor[k] = 0.999f;
    term[k] = 0.001f * (float)k;
  }
  for (int a = 0; a < ACCUMULATORS; a++) sum[a] = term * (float)(a + 1);
  for (int64_t i = 0; i < count; i++) {
    for (int a = 0; a < ACCUMULATORS; a++) sum[a] = sum[a] * factor + term;
  }
  volatile float sink = 0;
  for (int a = 0; a < ACCUMULATORS; a++) sink += sum[a][a % LANES];
  return 2.0 * LANES * ACCUMULATORS * (double)count;
}
