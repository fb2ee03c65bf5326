/* Cross products of vectors of three elements. T: dtype (of integers the unsigned one); WIDE: type that is
 * computed in. */
#include <timberframe/accelerator/language.h>

#define AT(x, index) (WIDE) TF_LOAD(T, x, index)

TF_KERNEL tf_cross(TF_GLOBAL const TF_STORAGE(T) *a, TF_GLOBAL const TF_STORAGE(T) *b, TF_GLOBAL TF_STORAGE(T) *out,
                   tf_index count) {
  TF_EACH(i, count) {
    const tf_index first = i / 3 * 3, at = i - first, next = first + (at + 1) % 3, last = first + (at + 2) % 3;
    const WIDE forward = AT(a, next) * AT(b, last), backward = AT(a, last) * AT(b, next);
    TF_STORE(T, out, i, (TF_VALUE(T))(forward - backward));
  }
}
