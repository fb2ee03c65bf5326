/* Which instruction set to use, and kernels by name. */
#include "runner/runner.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the processor multiplies matrices of bfloat16, and Linux gives this process the memory in which to save their
 * registers, without which their first use would end it (Documentation/arch/x86/xstate.rst of Linux). The numbers are
 * those of its asm/prctl.h and of CPUID's leaf 7, which older systems and compilers have no names for. */
static int has_matrices(void) {
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  const unsigned wanted = 1u << 22 | 1u << 24;
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & wanted) == wanted &&
         syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
/* By CPUID, and by XGETBV for the wide registers that the operating system saves. zig, which compiles for these systems,
 * has a stand-in for __builtin_cpu_supports that answers no to everything. The bits are those of Intel's manual. */
static int32_t best_of_processor(void) {
  const unsigned basic = 1u << 12 | 1u << 23 | 1u << 27;                                /* FMA, POPCNT, XGETBV */
  const unsigned avx2 = 1u << 3 | 1u << 5 | 1u << 8;                                    /* BMI, AVX2, BMI2 */
  const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;                    /* F, DQ, BW, VL */
  const unsigned wide = 1u << 1 | 1u << 2, widest = wide | 1u << 5 | 1u << 6 | 1u << 7; /* what of XMM to ZMM is saved */
  unsigned a, b, c, d, saved, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & basic) != basic) return TF_ISA_LEVEL_SCALAR;
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & avx2) != avx2 || (saved & wide) != wide) return TF_ISA_LEVEL_SCALAR;
  return (b & avx512) == avx512 && (saved & widest) == widest ? TF_ISA_LEVEL_AVX512 : TF_ISA_LEVEL_AVX2;
}
#endif
#endif

int32_t tf_best_isa(void) {
#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
  /* These also ask XGETBV whether the operating system saves the wide registers. */
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return __builtin_cpu_supports("avx512bf16") && has_matrices() ? TF_ISA_LEVEL_AMX : TF_ISA_LEVEL_AVX512;
    }
    return TF_ISA_LEVEL_AVX2;
  }
  return TF_ISA_LEVEL_SCALAR;
#elif defined(__x86_64__) && defined(__GNUC__)
  return best_of_processor();
#else
  return TF_ISA_LEVEL_SCALAR;
#endif
}

int32_t tf_multiplies_bfloat16(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  return tf_best_isa() >= TF_ISA_LEVEL_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
  return 0;
#endif
}

int64_t tf_kernel_address(const char *name, int32_t isa, int32_t *found) {
  const tf_kernel_entry *entry = tf_find_kernel(name, isa, found);
  return entry ? (int64_t)(intptr_t)entry->function : 0;
}

TF_KERNEL_LIBRARY
