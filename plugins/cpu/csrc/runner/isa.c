/* Which instruction set to use, and kernels by name. */
#include "runner/runner.h"

int32_t tf_best_isa(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  /* These also ask XGETBV whether the operating system saves the wide registers. */
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return TF_ISA_LEVEL_AVX512;
    }
    return TF_ISA_LEVEL_AVX2;
  }
#endif
  return TF_ISA_LEVEL_SCALAR;
}

int32_t tf_multiplies_bfloat16(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  return tf_best_isa() == TF_ISA_LEVEL_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
  return 0;
#endif
}

int64_t tf_kernel_address(const char *name, int32_t isa, int32_t *found) {
  const tf_kernel_entry *entry = tf_find_kernel(name, isa, found);
  return entry ? (int64_t)(intptr_t)entry->function : 0;
}

TF_KERNEL_LIBRARY
