/* One table of kernels for each family and instruction set.
 *
 * A family's sources are compiled once for each instruction set that it lists in meson.build, with TF_ISA defined as
 * scalar, avx2, avx512, amx or neon. Each source keeps its functions static and exports one table:
 *
 *     TF_TABLE(unary) = {TF_ENTRY(tanh_float32), TF_ENTRY(tanh_float64), TF_END};
 *
 * A family of several sources has a table in each, TF_TABLE(reduce_sum) and so on, which its line in meson.build lists
 * under `tables`. Everything but the tables is static: variants of one function must not meet in the linker.
 */
#ifndef TIMBERFRAME_CPU_TABLE_H
#define TIMBERFRAME_CPU_TABLE_H

#include <timberframe/kernel.h>

#ifndef TF_ISA
#define TF_ISA scalar
#endif

typedef struct tf_kernel_entry {
  const char *name;
  tf_kernel *function;
} tf_kernel_entry;

#define TF_JOIN_(a, b, c, d) a##b##c##d
#define TF_JOIN(a, b, c, d) TF_JOIN_(a, b, c, d)
#define TF_TABLE(family)                                                                                        \
  extern const tf_kernel_entry TF_JOIN(tf_table_, family, _, TF_ISA)[];                                          \
  const tf_kernel_entry TF_JOIN(tf_table_, family, _, TF_ISA)[]
#define TF_ENTRY(function) {#function, function}
#define TF_END {NULL, NULL}

#endif
