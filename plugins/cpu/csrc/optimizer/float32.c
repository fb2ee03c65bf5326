/* Update ops of float32, float16 and bfloat16. */
#include <math.h>

#include "optimizer/drive.h"

#define T float
#define RULE(name) name##_rule_float32
#define SQRT sqrtf
#define ABS fabsf
#define POW powf
#define EXP expf
#define HIGHER(a, b) ((a) < (b) ? (b) : (a))
#include <timberframe/optimizer/rules.h>
#include <timberframe/optimizer/real_rules.h>
#undef T

UPDATE_DRIVER(float32, float, float, , APPLY_AS_IT_IS)
UPDATE_DRIVER(float16, tf_float16, float, tf_float32_from_float16, APPLY_CONVERTED)
UPDATE_DRIVER(bfloat16, tf_bfloat16, float, tf_float32_from_bfloat16, APPLY_CONVERTED)

#define BOTH(X, ...) NUMBER_RULES(X, __VA_ARGS__) REAL_RULES(X, __VA_ARGS__)
#define ALL(X) BOTH(X, float32, float32) BOTH(X, float16, float32) BOTH(X, bfloat16, float32)

ALL(UPDATE_KERNEL)

TF_TABLE(optimizer_float32) = {ALL(ENTER) TF_END};
