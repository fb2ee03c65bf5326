/* The floating-point mode that kernels run in: round to nearest, subnormals kept, no traps. */
#ifndef TIMBERFRAME_CPU_FLOATING_POINT_H
#define TIMBERFRAME_CPU_FLOATING_POINT_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Sets the mode and returns the caller's for tf_restore_floating_point. Writing the register costs a few nanoseconds, so
 * it is left alone where nothing but the sticky flags (its low 6 bits) differs. */
static inline uint64_t tf_set_floating_point(void) {
  uint32_t old = _mm_getcsr();
  if ((old & ~0x3fu) != 0x1f80u) _mm_setcsr(0x1f80u);
  return old;
}

static inline void tf_restore_floating_point(uint64_t old) {
  if ((old & ~0x3fu) != 0x1f80u) _mm_setcsr((uint32_t)old);
}

#elif defined(__aarch64__)

static inline uint64_t tf_set_floating_point(void) {
  uint64_t old;
  __asm__ volatile("mrs %0, fpcr" : "=r"(old));
  if (old) __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
  return old;
}

static inline void tf_restore_floating_point(uint64_t old) {
  if (old) __asm__ volatile("msr fpcr, %0" ::"r"(old));
}

#else

static inline uint64_t tf_set_floating_point(void) { return 0; }
static inline void tf_restore_floating_point(uint64_t old) { (void)old; }

#endif
#endif
