/* What sources generated from chains of elementwise ops include. */
#ifndef TIMBERFRAME_ELEMENTWISE_H
#define TIMBERFRAME_ELEMENTWISE_H

#include <timberframe/math/rounding.h>

#include <timberframe/math/functions_float32.h>

#ifndef TF_NO_FLOAT64
#include <timberframe/math/undefine_precision.h>

#include <timberframe/math/functions_float64.h>
#endif
#include <timberframe/math/gradients.h>

#if defined(__OPENCL_VERSION__) || defined(__CUDACC__)
#define TF_ELEMENTS
#elif defined(__clang__)
#define TF_ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TF_ELEMENTS _Pragma("GCC ivdep")
#else
#define TF_ELEMENTS
#endif

#endif
