/* Logarithms for products with them, of float64 with more bits than log has. */
#ifndef TIMBERFRAME_MATH_EXACT_LOG_H
#define TIMBERFRAME_MATH_EXACT_LOG_H

#include <timberframe/math/power.h>

#define tf_exact_log_f32(x) tf_log_f32(x)
#define tf_exact_log1p_f32(x) tf_log1p_f32(x)
#define tf_exact_log_f64(x) power_log_float64(x)
#define tf_exact_log1p_f64(x) power_log1p_float64(x)

#endif
