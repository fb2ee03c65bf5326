/* Functions of float64 that every language's own library has, under the names that C, OpenCL C and CUDA C++ share: exp,
 * log, log1p, pow, sin, cos, tan, erf, erfc, tgamma, floor, ceil, fmod. Here is what they name differently. */
#ifndef TIMBERFRAME_MATH_LIBRARY_H
#define TIMBERFRAME_MATH_LIBRARY_H

#include <timberframe/math/language.h>

#if defined(__OPENCL_VERSION__) || defined(__CUDACC__)
#define tf_log_gamma_f64(x) lgamma(x)
#define tf_erf_f64(x) erf(x)
#else
#include <math.h>

#ifdef _WIN32
/* Windows has no lgamma_r, and nothing here reads what MinGW's lgamma writes besides its result. */
static inline double tf_log_gamma_f64(double x) { return lgamma(x); }
#else
extern double lgamma_r(double x, int *sign); /* POSIX; lgamma itself writes a global */

static inline double tf_log_gamma_f64(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
#endif
#endif

#endif
