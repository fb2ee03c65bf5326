/* What C, OpenCL C and CUDA C++ call differently, so that the functions of this folder are written once.
 *
 * Compile OpenCL C with TF_NO_FLOAT64 for a device that has no float64, CUDA C++ with device functions as the default
 * (NVRTC's -default-device), and both without contraction of a * b + c. */
#ifndef TIMBERFRAME_MATH_LANGUAGE_H
#define TIMBERFRAME_MATH_LANGUAGE_H

#if defined(__OPENCL_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT32_MAX 0x7fffffff
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 0x7fffffffffffffffL
#define INT64_MIN (-INT64_MAX - 1)
#define TF_HAS_FMA 1
#define TF_STATIC_TABLE __constant
#define TF_INFINITY32 INFINITY
#define TF_INFINITY64 ((double)INFINITY)
#define TF_NAN32 NAN
#define TF_NAN64 ((double)NAN)
#define tf_bits_of_f32(x) as_int(x)
#define tf_f32_of_bits(b) as_float(b)
#define tf_bits_of_f64(x) as_long(x)
#define tf_f64_of_bits(b) as_double(b)
#define tf_fused_f32(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define tf_fused_f64(a, b, c) fma((double)(a), (double)(b), (double)(c))
#define tf_root_f32(x) sqrt((float)(x))
#define tf_root_f64(x) sqrt((double)(x))
#define tf_floor_f32(x) floor((float)(x))
#define tf_ceil_f32(x) ceil((float)(x))
#define tf_rint_f32(x) rint((float)(x))
#define tf_floor_f64(x) floor((double)(x))
#define tf_ceil_f64(x) ceil((double)(x))
#define tf_rint_f64(x) rint((double)(x))

#elif defined(__CUDACC__)

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT32_MAX 0x7fffffff
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 0x7fffffffffffffffLL
#define INT64_MIN (-INT64_MAX - 1)
#else
#include <stdint.h>
#endif
#define TF_HAS_FMA 1
#define TF_STATIC_TABLE static __constant__ const
#define TF_INFINITY32 __int_as_float(0x7f800000)
#define TF_INFINITY64 __longlong_as_double(0x7ff0000000000000LL)
#define TF_NAN32 __int_as_float(0x7fc00000)
#define TF_NAN64 __longlong_as_double(0x7ff8000000000000LL)
#define tf_bits_of_f32(x) __float_as_int(x)
#define tf_f32_of_bits(b) __int_as_float(b)
#define tf_bits_of_f64(x) __double_as_longlong(x)
#define tf_f64_of_bits(b) __longlong_as_double(b)
#define tf_fused_f32(a, b, c) fmaf(a, b, c)
#define tf_fused_f64(a, b, c) fma((double)(a), (double)(b), (double)(c))
#define tf_root_f32(x) sqrtf(x)
#define tf_root_f64(x) sqrt((double)(x))
#define tf_floor_f32(x) floorf(x)
#define tf_ceil_f32(x) ceilf(x)
#define tf_rint_f32(x) rintf(x)
#define tf_floor_f64(x) floor((double)(x))
#define tf_ceil_f64(x) ceil((double)(x))
#define tf_rint_f64(x) rint((double)(x))

#else

#include <stdint.h>
#include <string.h>

#if defined(__FMA__) || defined(__aarch64__)
#define TF_HAS_FMA 1
#else
#define TF_HAS_FMA 0
#endif
#define TF_STATIC_TABLE static const
#define TF_INFINITY32 __builtin_inff()
#define TF_INFINITY64 __builtin_inf()
#define TF_NAN32 __builtin_nanf("")
#define TF_NAN64 __builtin_nan("")
#define tf_fused_f32(a, b, c) __builtin_fmaf(a, b, c)
#define tf_fused_f64(a, b, c) __builtin_fma(a, b, c)
#define tf_root_f32(x) __builtin_sqrtf(x)
#define tf_root_f64(x) __builtin_sqrt(x)

static inline int32_t tf_bits_of_f32(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float tf_f32_of_bits(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline int64_t tf_bits_of_f64(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double tf_f64_of_bits(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#endif

#endif
