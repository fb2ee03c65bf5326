/* How two elements are combined. T: dtype; INTEGER, SIGNED, HALF: defined for such T (HALF: a 16-bit float). */
#ifndef TIMBERFRAME_ACCELERATOR_COMBINING_H
#define TIMBERFRAME_ACCELERATOR_COMBINING_H

#include <timberframe/accelerator/language.h>

typedef TF_VALUE(T) tf_element;

enum tf_mode { TF_ADD, TF_SUB, TF_MUL, TF_DIV, TF_MIN, TF_MAX, TF_LAST, TF_OR, TF_XOR };

static inline tf_element tf_combined(tf_element a, tf_element b, int32_t mode) {
  switch (mode) {
#ifdef INTEGER
    /* sums and products wrap around, which is defined for unsigned integers alone */
    case TF_ADD: return (tf_element)((uint64_t)a + (uint64_t)b);
    case TF_SUB: return (tf_element)((uint64_t)a - (uint64_t)b);
    case TF_MUL: return (tf_element)((uint64_t)a * (uint64_t)b);
    case TF_OR: return (tf_element)(a | b);
    case TF_XOR: return (tf_element)(a ^ b);
    case TF_MIN: return b < a ? b : a;
    case TF_MAX: return b > a ? b : a;
#else
    case TF_ADD: return a + b;
    case TF_SUB: return a - b;
    case TF_MUL: return a * b;
    case TF_MIN: return b < a || b != b ? b : a; /* a NaN stays and takes the place of any number */
    case TF_MAX: return b > a || b != b ? b : a;
#endif
    case TF_DIV:
#ifdef SIGNED
      if (b == -1) return (tf_element)(0 - (uint64_t)a);
#endif
#ifdef INTEGER
      if (!b) return 0; /* an error that was reported */
#endif
      return (tf_element)(a / b);
    default: return b;
  }
}

#ifdef HALF
#define TF_ROUNDED__(dtype, x) tf_float32_from_##dtype(tf_##dtype##_from_float32(x))
#define TF_ROUNDED_(dtype, x) TF_ROUNDED__(dtype, x)
#define tf_rounded(x) TF_ROUNDED_(T, x)
#else
#define tf_rounded(x) (x)
#endif

#endif
