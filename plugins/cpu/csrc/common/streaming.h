/* Included first by sources whose loops do little with each element: memory sets their speed, and 256-bit vectors
 * stream from it a few percent faster than 512-bit ones (measured on sums of 2^18 and 2^20 floats). */
#ifndef TIMBERFRAME_CPU_STREAMING_H
#define TIMBERFRAME_CPU_STREAMING_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
#pragma GCC target("prefer-vector-width=256")
/* Around loops over what lies in the first cache level: there 512-bit vectors take half the time. */
#define TF_NEAR_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"prefer-vector-width=512\")")
#define TF_NEAR_END _Pragma("GCC pop_options")
#else
#define TF_NEAR_BEGIN
#define TF_NEAR_END
#endif

#endif
