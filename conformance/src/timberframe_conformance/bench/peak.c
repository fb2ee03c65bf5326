/* The peak rate of fused multiply-adds: independent accumulators, enough of them to hide the latency. */
#include <stdint.h>

typedef float lanes __attribute__((vector_size(64)));

enum { ACCUMULATORS = 10 };

double multiply_add(int64_t count) {
  lanes sum[ACCUMULATORS];
  lanes factor, term;
  for (int k = 0; k < 16; k++) {
    factor[k] = 0.999f;
    term[k] = 0.001f * (float)k;
  }
  for (int a = 0; a < ACCUMULATORS; a++) sum[a] = term * (float)(a + 1);
  for (int64_t i = 0; i < count; i++) {
    for (int a = 0; a < ACCUMULATORS; a++) sum[a] = sum[a] * factor + term;
  }
  volatile float sink = 0;
  for (int a = 0; a < ACCUMULATORS; a++) sink += sum[a][a];
  return 2.0 * 16 * ACCUMULATORS * (double)count;
}
