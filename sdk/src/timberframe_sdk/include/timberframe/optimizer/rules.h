/* The rules by which optimizers change a variable and its slots, for one computing type.
 *
 * Included with T (the type), RULE(name) (the function's name in this type), SQRT, and TF_INDEPENDENT (for loops
 * whose iterations are independent) defined. A rule changes `count` elements: state 0 is the variable, the others its
 * slots in the op's order. in[k] and out[k] are equal or do not overlap. `scalars` are the op's scalar
 * inputs in their order, `flag` its bool attr. The formulas, and the order in which they are evaluated, are those of
 * TensorFlow's ops; a multiplication by a reciprocal root is a division here. */

#define STATE(k, name) const T *name##_in = in[k]; T *name##_out = out[k]
#define RULE_FUNCTION(name)                                                                                          \
  static inline void RULE(name)(const T *scalars, int64_t flag, const T *const *in, T *const *out,                   \
                                const T *gradient, int64_t count)
#define EACH_ELEMENT TF_INDEPENDENT for (int64_t i = 0; i < count; i++)

RULE_FUNCTION(gradient_descent) {
  const T rate = scalars[0];
  STATE(0, variable);
  (void)flag;
  EACH_ELEMENT {
    variable_out[i] = variable_in[i] - gradient[i] * rate;
  }
}

/* flag: Nesterov's variant. */
RULE_FUNCTION(momentum) {
  const T rate = scalars[0], momentum = scalars[1];
  STATE(0, variable);
  STATE(1, accumulator);
  EACH_ELEMENT {
    const T g = gradient[i], a = accumulator_in[i] * momentum + g;
    accumulator_out[i] = a;
    variable_out[i] = variable_in[i] - (flag ? g * rate + a * momentum * rate : a * rate);
  }
}

RULE_FUNCTION(keras_momentum) {
  const T rate = scalars[0], momentum = scalars[1];
  STATE(0, variable);
  STATE(1, accumulator);
  EACH_ELEMENT {
    const T step = gradient[i] * rate, a = accumulator_in[i] * momentum - step;
    accumulator_out[i] = a;
    variable_out[i] = variable_in[i] + (flag ? a * momentum - step : a);
  }
}

/* flag: whether the accumulator changes. */
RULE_FUNCTION(adagrad) {
  const T rate = scalars[0];
  STATE(0, variable);
  STATE(1, accumulator);
  EACH_ELEMENT {
    const T g = gradient[i], a = flag ? accumulator_in[i] + g * g : accumulator_in[i];
    accumulator_out[i] = a;
    variable_out[i] = variable_in[i] - g * rate / SQRT(a);
  }
}

RULE_FUNCTION(adagrad_v2) {
  const T rate = scalars[0], epsilon = scalars[1];
  STATE(0, variable);
  STATE(1, accumulator);
  EACH_ELEMENT {
    const T g = gradient[i], a = flag ? accumulator_in[i] + g * g : accumulator_in[i];
    accumulator_out[i] = a;
    variable_out[i] = variable_in[i] - g * rate / (SQRT(a) + epsilon);
  }
}

RULE_FUNCTION(adadelta) {
  const T rate = scalars[0], rho = scalars[1], epsilon = scalars[2], rest = 1 - rho;
  STATE(0, variable);
  STATE(1, accumulator);
  STATE(2, update);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], a = accumulator_in[i] * rho + g * g * rest, u = update_in[i];
    const T step = SQRT(u + epsilon) / SQRT(a + epsilon) * g;
    accumulator_out[i] = a;
    variable_out[i] = variable_in[i] - step * rate;
    update_out[i] = u * rho + step * step * rest;
  }
}

RULE_FUNCTION(rmsprop) {
  const T rate = scalars[0], rest = 1 - scalars[1], momentum = scalars[2], epsilon = scalars[3];
  STATE(0, variable);
  STATE(1, square);
  STATE(2, momentum);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], s = square_in[i] + (g * g - square_in[i]) * rest;
    const T step = momentum_in[i] * momentum + g * rate / SQRT(s + epsilon);
    square_out[i] = s;
    momentum_out[i] = step;
    variable_out[i] = variable_in[i] - step;
  }
}

RULE_FUNCTION(centered_rmsprop) {
  const T rate = scalars[0], rest = 1 - scalars[1], momentum = scalars[2], epsilon = scalars[3];
  STATE(0, variable);
  STATE(1, mean);
  STATE(2, square);
  STATE(3, momentum);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], s = square_in[i] + (g * g - square_in[i]) * rest, m = mean_in[i] + (g - mean_in[i]) * rest;
    const T step = momentum_in[i] * momentum + g * rate / SQRT((s - m * m) + epsilon);
    square_out[i] = s;
    mean_out[i] = m;
    momentum_out[i] = step;
    variable_out[i] = variable_in[i] - step;
  }
}

/* scalars: beta1 and beta2 to the power of the step, learning rate, beta1, beta2, epsilon. flag: Nesterov's variant. */
RULE_FUNCTION(adam) {
  const T rate = scalars[2] * SQRT(1 - scalars[1]) / (1 - scalars[0]), beta = scalars[3], rest = 1 - beta;
  const T square_rest = 1 - scalars[4], epsilon = scalars[5];
  STATE(0, variable);
  STATE(1, mean);
  STATE(2, square);
  EACH_ELEMENT {
    const T g = gradient[i], m = mean_in[i] + (g - mean_in[i]) * rest;
    const T s = square_in[i] + (g * g - square_in[i]) * square_rest;
    mean_out[i] = m;
    square_out[i] = s;
    variable_out[i] = variable_in[i] - (flag ? g * rest + beta * m : m) * rate / (SQRT(s) + epsilon);
  }
}
