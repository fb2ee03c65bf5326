/* Update ops of float64. */
#include <math.h>

#include "optimizer/drive.h"

#define T double
#define RULE(name) name##_rule_float64
#define SQRT sqrt
#define ABS fabs
#define POW pow
#define EXP exp
#define HIGHER(a, b) ((a) < (b) ? (b) : (a))
#include <timberframe/optimizer/rules.h>
#include <timberframe/optimizer/real_rules.h>
#undef T

UPDATE_DRIVER(float64, double, double, , APPLY_AS_IT_IS)

#define ALL(X) NUMBER_RULES(X, float64, float64) REAL_RULES(X, float64, float64)

ALL(UPDATE_KERNEL)

TF_TABLE(optimizer_float64) = {ALL(ENTER) TF_END};
