/* Update ops of complex numbers: squares and roots are complex ones, as in TensorFlow. */
#include <complex.h>

#include "optimizer/drive.h"

#define T float complex
#define RULE(name) name##_rule_complex64
#define SQRT csqrtf
#include <timberframe/optimizer/rules.h>
#undef T
#undef RULE
#undef SQRT
#undef STATE
#undef RULE_FUNCTION
#undef EACH_ELEMENT

#define T double complex
#define RULE(name) name##_rule_complex128
#define SQRT csqrt
#include <timberframe/optimizer/rules.h>
#undef T

UPDATE_DRIVER(complex64, float complex, float complex, , APPLY_AS_IT_IS)
UPDATE_DRIVER(complex128, double complex, double complex, , APPLY_AS_IT_IS)

#define ALL(X) NUMBER_RULES(X, complex64, complex64) NUMBER_RULES(X, complex128, complex128)

ALL(UPDATE_KERNEL)

TF_TABLE(optimizer_complex) = {ALL(ENTER) TF_END};
