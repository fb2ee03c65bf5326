/* <complex.h>, with the macros that C11 asks of it and Windows' header lacks. */
#ifndef TIMBERFRAME_CPU_COMPLEX_NUMBERS_H
#define TIMBERFRAME_CPU_COMPLEX_NUMBERS_H

#include <complex.h>

#ifndef CMPLX
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#endif
#ifndef CMPLXF
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))
#endif

#endif
