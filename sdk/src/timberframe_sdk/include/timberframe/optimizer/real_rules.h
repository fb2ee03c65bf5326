/* The rules that TensorFlow has for real numbers only; included after rules.h, with ABS, POW, EXP and HIGHER too. */

#define SIGN(x) (T)(((x) > 0) - ((x) < 0))

/* scalars: beta1 to the power of the step, learning rate, beta1, beta2, epsilon. */
RULE_FUNCTION(adamax) {
  const T rate = scalars[1] / (1 - scalars[0]), rest = 1 - scalars[2], beta2 = scalars[3], epsilon = scalars[4];
  STATE(0, variable);
  STATE(1, mean);
  STATE(2, norm);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], m = mean_in[i] + (g - mean_in[i]) * rest, n = HIGHER(beta2 * norm_in[i], ABS(g));
    mean_out[i] = m;
    norm_out[i] = n;
    variable_out[i] = variable_in[i] - rate * (m / (n + epsilon));
  }
}

RULE_FUNCTION(adam_with_amsgrad) {
  const T rate = scalars[2] * SQRT(1 - scalars[1]) / (1 - scalars[0]), rest = 1 - scalars[3];
  const T square_rest = 1 - scalars[4], epsilon = scalars[5];
  STATE(0, variable);
  STATE(1, mean);
  STATE(2, square);
  STATE(3, highest);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], m = mean_in[i] + (g - mean_in[i]) * rest;
    const T s = square_in[i] + (g * g - square_in[i]) * square_rest, h = HIGHER(highest_in[i], s);
    mean_out[i] = m;
    square_out[i] = s;
    highest_out[i] = h;
    variable_out[i] = variable_in[i] - m * rate / (SQRT(h) + epsilon);
  }
}

/* One element of Ftrl. With `times_rate` the linear term is kept multiplied by the learning rate. */
#define FTRL_ELEMENT(POWER)                                                                                          \
  const T g = gradient[i], v = variable_in[i], a = accumulator_in[i], sum = a + g * g;                               \
  const T shrunk = g + 2 * shrinkage * v, power = POWER(sum), change = power - POWER(a);                             \
  const T l = linear_in[i] + (times_rate ? shrunk * rate - change * v : shrunk - change / rate * v);                 \
  const T curve = times_rate ? power + 2 * l2 * rate : power / rate + 2 * l2;                                        \
  accumulator_out[i] = sum;                                                                                          \
  linear_out[i] = l;                                                                                                 \
  variable_out[i] = ABS(l) > threshold ? (threshold * SIGN(l) - l) / curve : 0;
#define RATE_POWER(x) POW(x, -rate_power)

static inline void RULE(ftrl_with)(const T *scalars, T shrinkage, T rate_power, int64_t times_rate,
                                   const T *const *in, T *const *out, const T *gradient, int64_t count) {
  const T rate = scalars[0], l2 = scalars[2], threshold = times_rate ? scalars[1] * rate : scalars[1];
  STATE(0, variable);
  STATE(1, accumulator);
  STATE(2, linear);
  if (rate_power == (T)-0.5) {
    EACH_ELEMENT {
      FTRL_ELEMENT(SQRT)
    }
  } else {
    for (int64_t i = 0; i < count; i++) {
      FTRL_ELEMENT(RATE_POWER)
    }
  }
}

/* scalars: learning rate, l1, l2, power of the learning rate. flag: times_rate. */
RULE_FUNCTION(ftrl) {
  RULE(ftrl_with)(scalars, 0, scalars[3], flag, in, out, gradient, count);
}

/* scalars: learning rate, l1, l2, l2 shrinkage, power of the learning rate. */
RULE_FUNCTION(ftrl_v2) {
  RULE(ftrl_with)(scalars, scalars[3], scalars[4], flag, in, out, gradient, count);
}

RULE_FUNCTION(add_sign) {
  const T rate = scalars[0], alpha = scalars[1], decay = scalars[2], beta = scalars[3], rest = 1 - beta;
  STATE(0, variable);
  STATE(1, mean);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], m = mean_in[i] * beta + g * rest;
    mean_out[i] = m;
    variable_out[i] = variable_in[i] - rate * (alpha + decay * (SIGN(g) * SIGN(m))) * g;
  }
}

RULE_FUNCTION(power_sign) {
  const T rate = scalars[0], beta = scalars[3], rest = 1 - beta;
  const T same = EXP(scalars[1] * scalars[2]), opposite = EXP(-(scalars[1] * scalars[2]));
  STATE(0, variable);
  STATE(1, mean);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], m = mean_in[i] * beta + g * rest, agreement = SIGN(g) * SIGN(m);
    mean_out[i] = m;
    variable_out[i] = variable_in[i] - rate * (agreement > 0 ? same : agreement < 0 ? opposite : 1) * g;
  }
}

/* The step of Fobos: v pulled towards 0 by `pull` and shrunk. */
#define PROXIMAL(v, pull, shrink) (l1 > 0 ? SIGN(v) * HIGHER(ABS(v) - (pull), (T)0) / (shrink) : (v) / (shrink))

RULE_FUNCTION(proximal_gradient_descent) {
  const T rate = scalars[0], l1 = scalars[1], l2 = scalars[2];
  STATE(0, variable);
  (void)flag;
  EACH_ELEMENT {
    const T v = variable_in[i] - gradient[i] * rate;
    variable_out[i] = PROXIMAL(v, rate * l1, 1 + l2 * rate);
  }
}

RULE_FUNCTION(proximal_adagrad) {
  const T rate = scalars[0], l1 = scalars[1], l2 = scalars[2];
  STATE(0, variable);
  STATE(1, accumulator);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], a = accumulator_in[i] + g * g, own = rate / SQRT(a), v = variable_in[i] - g * own;
    accumulator_out[i] = a;
    variable_out[i] = PROXIMAL(v, own * l1, 1 + l2 * own);
  }
}

/* scalars: learning rate, l1, l2, global step. */
RULE_FUNCTION(adagrad_da) {
  const T rate = scalars[0], l1 = scalars[1], l2 = scalars[2], step = scalars[3];
  T *variable_out = out[0];
  STATE(1, sum);
  STATE(2, square);
  (void)flag;
  EACH_ELEMENT {
    const T g = gradient[i], s = sum_in[i] + g, q = square_in[i] + g * g, curve = l2 * (step * rate) + SQRT(q);
    sum_out[i] = s;
    square_out[i] = q;
    variable_out[i] = (l1 > 0 ? -rate * SIGN(s) * HIGHER(ABS(s) - step * l1, (T)0) : -rate * s) / curve;
  }
}
