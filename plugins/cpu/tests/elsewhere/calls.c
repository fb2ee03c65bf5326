/* Repeats recorded calls of kernels, without Python: `calls FILE [BLAS]` runs each call of a file that record.py wrote with
 * the build for this system, and compares the outputs with those recorded.
 *
 * The file is "TFCALLS2" and then, for each call, int64 words: the length of the kernel's name, its instruction set, how
 * many inputs and outputs it has, the bytes of its workspace, how many parameters, whether it adds up many products; the
 * name; the parameters; and for each input and output its dtype, rank, shape, bytes, and the data. Names and data are
 * filled up to whole words. BLAS: the path of OpenBLAS; without it the kernels that call it are to be left out of the
 * file.
 *
 * The status is 0 where all results have the recorded bits, or differ by as little as another C library's functions may
 * round otherwise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/platform.h"
#include "runner/runner.h"

enum { MAX_TENSORS = 64, MAX_NAME = 256, SHOWN = 40, UNREADABLE = 3 };
/* What results may differ by, in units of the last place of 1 or of the recorded value, whichever is larger; of sums of
 * products of the largest recorded value, since another OpenBLAS adds up in another order terms that may cancel. */
static const double ALLOWED = 16;

/* A library without Python has no host kernels, and no signals to see to. */
int32_t tf_python_signals(void) { return 0; }
int32_t tf_python_launch(int64_t handle, void *inputs, void *outputs) {
  (void)handle, (void)inputs, (void)outputs;
  return 1;
}

typedef struct {
  tf_tensor tensor;
  int64_t nbytes;
  void *recorded;
} argument;

typedef struct {
  char name[MAX_NAME];
  int32_t isa;
  int32_t adds_up;
  int64_t inputs, outputs, workspace;
  int64_t *parameters;
  argument arguments[MAX_TENSORS];
} call;

typedef struct {
  int64_t same, close, left_out, wrong, complex;
  double furthest;
} verdicts;

static FILE *file;

/* Zeros on whole cache lines of their own; the process is short and gives nothing back. */
static void *memory(int64_t nbytes) {
  char *start = calloc((size_t)nbytes / TF_ALIGNMENT + 3, TF_ALIGNMENT);
  if (!start) exit(UNREADABLE);
  return start + TF_ALIGNMENT - (uintptr_t)start % TF_ALIGNMENT;
}

/* The next bytes of the file, filled up to whole words there. */
static void *data(int64_t nbytes) {
  const size_t whole = (size_t)(nbytes + 7) / 8 * 8;
  void *found = memory((int64_t)whole);
  if (whole && fread(found, whole, 1, file) != 1) exit(UNREADABLE);
  return found;
}

static int64_t word(void) { return *(int64_t *)data(8); }

static argument next_argument(void) {
  const int32_t dtype = (int32_t)word(), rank = (int32_t)word();
  argument a = {.tensor = {.struct_size = sizeof(tf_tensor), .dtype = dtype, .rank = rank, .size = 1}};
  int64_t shape[64];
  if (rank > 64) exit(UNREADABLE);
  for (int64_t i = 0; i < rank; i++) a.tensor.size *= shape[i] = word();
  if (rank > TF_MAX_RANK) { /* kernels see one dimension of all elements */
    a.tensor.rank = 1;
    shape[0] = a.tensor.size;
  }
  for (int64_t i = a.tensor.rank - 1, stride = 1; i >= 0; stride *= shape[i--]) {
    a.tensor.shape[i] = shape[i];
    a.tensor.strides[i] = stride;
  }
  a.nbytes = word();
  a.recorded = data(a.nbytes);
  return a;
}

/* Reads the next call; 0 at the end of the file. */
static int next_call(call *c) {
  int64_t length;
  if (fread(&length, sizeof length, 1, file) != 1) return 0;
  const int64_t isa = word(), inputs = word(), outputs = word(), workspace = word(), parameters = word(),
                adds_up = word();
  *c = (call){.isa = (int32_t)isa, .adds_up = (int32_t)adds_up, .inputs = inputs, .outputs = outputs,
              .workspace = workspace};
  if (length >= MAX_NAME || c->inputs + c->outputs >= MAX_TENSORS) exit(UNREADABLE);
  memcpy(c->name, data(length), (size_t)length);
  c->parameters = data(8 * parameters);
  for (int64_t i = 0; i < c->inputs + c->outputs; i++) {
    argument *a = &c->arguments[i];
    *a = next_argument();
    a->tensor.data = i < c->inputs ? a->recorded : memory(a->nbytes);
  }
  return 1;
}

static double number(const tf_tensor *t, const void *values, int64_t i) {
  const int single = t->dtype == TF_FLOAT32 || t->dtype == TF_COMPLEX64;
  return single ? ((const float *)values)[i] : ((const double *)values)[i];
}

/* By how much a result differs from what was recorded, in the unit of ALLOWED; infinity where the dtype's results are not
 * to differ, or one is NaN or infinite and the other is not. adds_up: whether it is judged by the largest value. */
static double difference(const argument *a, int32_t adds_up) {
  const tf_tensor *t = &a->tensor;
  if (!memcmp(t->data, a->recorded, (size_t)a->nbytes)) return 0;
  const int complex = t->dtype == TF_COMPLEX64 || t->dtype == TF_COMPLEX128;
  if (!complex && t->dtype != TF_FLOAT32 && t->dtype != TF_FLOAT64) return INFINITY;
  const double unit = t->dtype == TF_FLOAT32 || t->dtype == TF_COMPLEX64 ? 0x1p-23 : 0x1p-52;
  double worst = 0, largest = 1;
  for (int64_t i = 0; adds_up && i < a->tensor.size * (1 + complex); i++) {
    const double magnitude = fabs(number(t, a->recorded, i));
    if (isfinite(magnitude)) largest = fmax(largest, magnitude);
  }
  for (int64_t i = 0; i < a->tensor.size * (1 + complex); i++) {
    const double got = number(t, t->data, i), wanted = number(t, a->recorded, i);
    if (got == wanted || (isnan(got) && isnan(wanted))) continue;
    const double apart = fabs(got - wanted) / fmax(fabs(wanted), largest);
    worst = isnan(apart) ? INFINITY : fmax(worst, apart);
  }
  return worst / unit;
}

/* Runs a call and returns its code; -1 where this build has no kernel of this name for the instruction set. */
static int32_t run(call *c, int32_t thread_count) {
  int32_t found;
  const int64_t function = tf_kernel_address(c->name, c->isa, &found);
  if (!function || found != c->isa || c->isa > tf_best_isa()) return -1;
  tf_tensor in[MAX_TENSORS], out[MAX_TENSORS];
  for (int64_t i = 0; i < c->inputs; i++) in[i] = c->arguments[i].tensor;
  for (int64_t i = 0; i < c->outputs; i++) out[i] = c->arguments[c->inputs + i].tensor;
  out[c->outputs] = (tf_tensor){.struct_size = sizeof(tf_tensor), .dtype = TF_UINT8, .data = memory(c->workspace),
                                .size = c->workspace, .rank = 1, .shape = {c->workspace}, .strides = {1}};
  tf_error error;
  return tf_call_kernel(function, c->inputs, in, c->outputs + (c->workspace > 0), out, c->parameters, thread_count, &error);
}

/* Returns whether the C library has functions of complex numbers. Wine's names them, and a call of one ends the program. */
static int has_complex_functions(void) {
#ifdef _WIN32
  const HMODULE library = GetModuleHandleA("ntdll.dll");
  return !library || !GetProcAddress(library, "wine_get_version");
#else
  return 1;
#endif
}

static int is_complex(const call *c) {
  for (int64_t i = 0; i < c->inputs; i++) {
    const int32_t dtype = c->arguments[i].tensor.dtype;
    if (dtype == TF_COMPLEX64 || dtype == TF_COMPLEX128) return 1;
  }
  return 0;
}

static void judge(call *c, verdicts *v) {
  if (is_complex(c) && !has_complex_functions()) {
    v->complex++;
    return;
  }
  const int32_t code = run(c, 2);
  if (code < 0) {
    v->left_out++;
    return;
  }
  double worst = code ? INFINITY : 0;
  for (int64_t i = 0; i < c->outputs; i++) worst = fmax(worst, difference(&c->arguments[c->inputs + i], c->adds_up));
  if (worst > ALLOWED && v->wrong++ < SHOWN) {
    printf("%s, instruction set %d: code %d, results differ by %g units in the last place\n", c->name, c->isa, code, worst);
  }
  v->same += worst == 0;
  v->close += worst > 0 && worst <= ALLOWED;
  if (worst <= ALLOWED) v->furthest = fmax(v->furthest, worst);
}

int main(int argc, char **argv) {
  char magic[8];
  file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (!file || fread(magic, sizeof magic, 1, file) != 1 || memcmp(magic, "TFCALLS2", sizeof magic)) {
    fprintf(stderr, "usage: calls FILE [BLAS]; a file of record.py is required\n");
    return 2;
  }
  const char *refused = argc > 2 ? tf_blas_load(argv[2]) : NULL;
  if (refused) {
    fprintf(stderr, "%s: %s\n", argv[2], refused);
    return 2;
  }
  static call c;
  verdicts v = {0};
  while (next_call(&c)) judge(&c, &v);
  printf("%lld calls with the recorded bits, %lld within %g units in the last place, %lld wrong, %lld not in this build or "
         "beyond this processor\n",
         (long long)v.same, (long long)v.close, v.furthest, (long long)v.wrong, (long long)v.left_out);
  if (v.complex) {
    printf("%lld calls on complex numbers left out: Wine's C library lacks their functions\n", (long long)v.complex);
  }
  return v.wrong > 0 || v.same + v.close == 0;
}
