/* The parts of CUDA C++ that kernels use, for the system's C++ compiler: groups run one after the other, and the
 * work-items of a group as fibers that change places at barriers.
 *
 * Included before a kernel's source. Shared memory is filled with a pattern before each group, work-items that meet at
 * different barriers are an error, and every other launch runs groups and work-items backwards, so that results that
 * depend on their order show. */
#ifndef CUDA_ON_CPU_H
#define CUDA_ON_CPU_H

#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define __CUDACC__ 1
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("group_memory")))
#define __syncthreads() emulated_barrier(__LINE__)

/* Of the C library; C++'s own header takes longer to read than a kernel to compile. */
#define EMULATED_1(name) double name(double); float name##f(float);
#define EMULATED_2(name) double name(double, double); float name##f(float, float);
extern "C" {
EMULATED_1(sqrt) EMULATED_1(cbrt) EMULATED_1(floor) EMULATED_1(ceil) EMULATED_1(trunc) EMULATED_1(rint) EMULATED_1(fabs)
EMULATED_1(exp) EMULATED_1(exp2) EMULATED_1(expm1) EMULATED_1(log) EMULATED_1(log2) EMULATED_1(log10) EMULATED_1(log1p)
EMULATED_1(sin) EMULATED_1(cos) EMULATED_1(tan) EMULATED_1(asin) EMULATED_1(acos) EMULATED_1(atan)
EMULATED_1(sinh) EMULATED_1(cosh) EMULATED_1(tanh) EMULATED_1(asinh) EMULATED_1(acosh) EMULATED_1(atanh)
EMULATED_1(erf) EMULATED_1(erfc) EMULATED_1(lgamma) EMULATED_1(tgamma)
EMULATED_2(pow) EMULATED_2(fmod) EMULATED_2(atan2) EMULATED_2(hypot) EMULATED_2(copysign) EMULATED_2(nextafter)
EMULATED_2(fmin) EMULATED_2(fmax)
double ldexp(double, int), fma(double, double, double);
float ldexpf(float, int), fmaf(float, float, float);
}

struct emulated_dim3 {
  unsigned x, y, z;
};
static emulated_dim3 threadIdx, blockIdx, blockDim, gridDim;

/* Fibers. Each is made once for a launch and runs the kernel again for every group; they change places by longjmp, which
 * unlike swapcontext asks nothing of the operating system. */
enum { EMULATED_STACK = 64 * 1024, EMULATED_MOST_ITEMS = 1024, EMULATED_ENDED = -1 };
static jmp_buf emulated_scheduler, emulated_items[EMULATED_MOST_ITEMS];
static bool emulated_made[EMULATED_MOST_ITEMS];
static char *emulated_stacks; /* memory of the caller, EMULATED_STACK for each work-item of a group */
static int emulated_lines[EMULATED_MOST_ITEMS]; /* the line of the barrier at which each waits */
static unsigned emulated_current;
static void (*emulated_body)(void *);
static void *emulated_arguments;

static void emulated_barrier(int line) {
  const emulated_dim3 own = threadIdx;
  const unsigned item = emulated_current;
  emulated_lines[item] = line;
  if (!_setjmp(emulated_items[item])) _longjmp(emulated_scheduler, 1);
  threadIdx = own;
}

static void emulated_start() {
  const unsigned item = emulated_current;
  for (;;) {
    emulated_body(emulated_arguments);
    emulated_lines[item] = EMULATED_ENDED;
    if (!_setjmp(emulated_items[item])) _longjmp(emulated_scheduler, 1);
  }
}

/* Lets a work-item run to its next barrier or to its end. */
static __attribute__((noinline)) void emulated_resume(unsigned item) {
  emulated_current = item;
  if (_setjmp(emulated_scheduler)) return;
  if (emulated_made[item]) _longjmp(emulated_items[item], 1);
  emulated_made[item] = true;
  ucontext_t fresh;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = emulated_stacks + (size_t)item * EMULATED_STACK;
  fresh.uc_stack.ss_size = EMULATED_STACK;
  fresh.uc_link = nullptr;
  makecontext(&fresh, emulated_start, 0);
  setcontext(&fresh);
}

static emulated_dim3 emulated_index(unsigned number, emulated_dim3 size) {
  return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

/* Runs all fibers of a group from barrier to barrier; returns 0, or the line of a barrier that some missed. */
static int emulated_group(unsigned count, int backwards) {
  for (;;) {
    for (unsigned i = 0; i < count; i++) {
      const unsigned item = backwards ? count - 1 - i : i;
      threadIdx = emulated_index(item, blockDim);
      emulated_resume(item);
    }
    for (unsigned i = 1; i < count; i++)
      if (emulated_lines[i] != emulated_lines[0])
        return emulated_lines[0] == EMULATED_ENDED ? emulated_lines[i] : emulated_lines[0];
    if (emulated_lines[0] == EMULATED_ENDED) return 0;
  }
}

extern "C" char __start_group_memory[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_group_memory[] __attribute__((weak, visibility("hidden")));

static int emulated_run(void (*body)(void *), void *arguments, emulated_dim3 groups, emulated_dim3 group, int backwards,
                        char *stacks) {
  const uint64_t group_count = (uint64_t)groups.x * groups.y * groups.z;
  const unsigned count = group.x * group.y * group.z;
  emulated_body = body, emulated_arguments = arguments, emulated_stacks = stacks;
  gridDim = groups, blockDim = group;
  memset(emulated_made, 0, sizeof emulated_made); /* another library may have used the stacks */
  for (uint64_t g = 0; g < group_count; g++) {
    const uint64_t number = backwards ? group_count - 1 - g : g;
    blockIdx = {(unsigned)(number % groups.x), (unsigned)(number / groups.x % groups.y),
                (unsigned)(number / groups.x / groups.y)};
    if (__start_group_memory) memset(__start_group_memory, 0xdb, __stop_group_memory - __start_group_memory);
    if (stacks) {
      const int missed = emulated_group(count, backwards);
      if (missed) return missed;
    } else {
      for (unsigned i = 0; i < count; i++) {
        threadIdx = emulated_index(backwards ? count - 1 - i : i, group);
        body(arguments);
      }
    }
  }
  return 0;
}

/* What is called for a kernel: its parameters' types as text, and a launch with pointers to the arguments. */
template <typename A> struct emulated_type;
template <typename A> struct emulated_type<A *> { static constexpr const char *name = "pointer "; };
#define EMULATED_TYPE(type, text) \
  template <> struct emulated_type<type> { static constexpr const char *name = text " "; };
EMULATED_TYPE(float, "float32")
EMULATED_TYPE(double, "float64")
EMULATED_TYPE(int8_t, "int8")
EMULATED_TYPE(int16_t, "int16")
EMULATED_TYPE(int32_t, "int32")
EMULATED_TYPE(int64_t, "int64")
EMULATED_TYPE(uint8_t, "uint8")
EMULATED_TYPE(uint16_t, "uint16")
EMULATED_TYPE(uint32_t, "uint32")
EMULATED_TYPE(uint64_t, "uint64")

template <int...> struct emulated_numbers {};
template <int n, int... rest> struct emulated_count : emulated_count<n - 1, n - 1, rest...> {};
template <int... all> struct emulated_count<0, all...> { typedef emulated_numbers<all...> numbers; };

template <typename... A> struct emulated_kernel {
  void (*kernel)(A...);
  void **arguments;
  template <int... n> void call(emulated_numbers<n...>) { kernel(*(A *)arguments[n]...); }
  static void run(void *self) { ((emulated_kernel *)self)->call(typename emulated_count<sizeof...(A)>::numbers()); }
};

template <typename... A>
static int emulated_launch(void (*kernel)(A...), void **arguments, const unsigned *sizes, int backwards, char *stacks) {
  emulated_kernel<A...> bound{kernel, arguments};
  return emulated_run(emulated_kernel<A...>::run, &bound, {sizes[0], sizes[1], sizes[2]},
                      {sizes[3], sizes[4], sizes[5]}, backwards, stacks);
}

template <typename... A> static void emulated_types(void (*)(A...), char *text) {
  *text = 0;
  (strcat(text, emulated_type<A>::name), ...);
}

/* Atomics: one work-item runs at a time. */
#define EMULATED_ATOMIC(name, result)                                      \
  template <typename A, typename B> static inline A name(A *p, B value) {  \
    const A old = *p, v = (A)value;                                        \
    *p = result;                                                           \
    return old;                                                            \
  }
EMULATED_ATOMIC(atomicAdd, (A)(old + v))
EMULATED_ATOMIC(atomicSub, (A)(old - v))
EMULATED_ATOMIC(atomicExch, v)
EMULATED_ATOMIC(atomicMin, old < v ? old : v)
EMULATED_ATOMIC(atomicMax, old > v ? old : v)
EMULATED_ATOMIC(atomicAnd, (A)(old & v))
EMULATED_ATOMIC(atomicOr, (A)(old | v))
EMULATED_ATOMIC(atomicXor, (A)(old ^ v))

template <typename A, typename B> static inline A atomicCAS(A *p, B expected, B value) {
  const A old = *p;
  if (old == (A)expected) *p = (A)value;
  return old;
}

static inline void __threadfence() {}

/* Numbers as bits. */
template <typename To, typename From> static inline To emulated_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "a cast of bits keeps the size");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}
static inline float __int_as_float(int x) { return emulated_cast<float>(x); }
static inline int __float_as_int(float x) { return emulated_cast<int>(x); }
static inline double __longlong_as_double(long long x) { return emulated_cast<double>(x); }
static inline long long __double_as_longlong(double x) { return emulated_cast<long long>(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }

/* The conversions that language.h writes in PTX for a GPU. */
static inline float tf_float32_from_float16(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
  if (exponent == 31) return emulated_cast<float>(sign | 0x7f800000u | fraction << 13);
  const float size = exponent ? ldexpf((float)(fraction | 0x400u), (int)exponent - 25) : ldexpf((float)fraction, -24);
  return sign ? -size : size;
}

static inline uint16_t tf_float16_from_float32(float x) {
  const uint32_t bits = emulated_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u;
  if (x != x) return (uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
  const float size = fabsf(x);
  if (size >= 65520.0f) return (uint16_t)(sign | 0x7c00u);
  if (size < 6.103515625e-05f) return (uint16_t)(sign | (uint32_t)rintf(ldexpf(size, 24)));
  const uint32_t whole = bits & 0x7fffffffu; /* rebiased from 127 to 15, then rounded to nearest, ties to even */
  return (uint16_t)(sign | ((whole - 0x38000000u + 0xfffu + (whole >> 13 & 1u)) >> 13));
}

#endif
