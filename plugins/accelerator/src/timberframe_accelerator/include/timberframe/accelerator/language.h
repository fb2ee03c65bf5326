/* The language of accelerator kernels: one source is OpenCL C and CUDA C++.
 *
 * A kernel is TF_KERNEL name(TF_GLOBAL const tf_storage_float32 *x, ...) {...}. Elements are read and written by
 * tf_load_<dtype>(pointer, index) and tf_store_<dtype>(pointer, index, value): what lies in memory is
 * tf_storage_<dtype>, what is computed with is tf_value_<dtype> (float for the 16-bit floats). A source for several
 * dtypes is compiled with T defined as float32, say, and writes TF_STORAGE(T), TF_VALUE(T), TF_LOAD(T, pointer, index)
 * and TF_STORE(T, pointer, index, value). Counts and indices are tf_index, which INDEX makes int32 or int64.
 * TF_KERNEL_OF(x, y, z) is a kernel that is launched in groups of this size; TF_UNROLL stands before a loop.
 * tf_lane() is tf_local_id(0) as an index: pointer[tf_lane()] lets a CPU's compiler see that lanes read neighbours.
 * Functions that take shared memory are TF_INLINE: where the optimiser had put the kernel's array for the parameter of
 * one that was called, PoCL 3.1 gave all work-groups the same array. */
#ifndef TIMBERFRAME_ACCELERATOR_LANGUAGE_H
#define TIMBERFRAME_ACCELERATOR_LANGUAGE_H

#include <timberframe/math/language.h>

#define TF_JOIN2_(a, b) tf_##a##_##b
#define TF_JOIN2(a, b) TF_JOIN2_(a, b)
#define TF_STORAGE(dtype) TF_JOIN2(storage, dtype)
#define TF_VALUE(dtype) TF_JOIN2(value, dtype)
#define TF_LOAD(dtype, pointer, index) TF_JOIN2(load, dtype)(pointer, index)
#define TF_STORE(dtype, pointer, index, value) TF_JOIN2(store, dtype)(pointer, index, value)

#if defined(__OPENCL_VERSION__)

#define TF_KERNEL __kernel void
#define TF_KERNEL_OF(x, y, z) __kernel __attribute__((reqd_work_group_size(x, y, z))) void
#define TF_UNROLL _Pragma("unroll")
#define TF_GLOBAL __global
#define TF_LOCAL __local
#define TF_RESTRICT restrict /* of a table: nothing that the kernel writes changes it */
#define TF_SHARED __local /* of an array declared in a kernel, which its work-group shares */
#define TF_INLINE static inline __attribute__((always_inline))
#define tf_barrier() barrier(CLK_LOCAL_MEM_FENCE)
#define tf_global_id(d) get_global_id(d)
#define tf_global_size(d) get_global_size(d)
#define tf_local_id(d) ((int32_t)get_local_id(d))
#define tf_lane() get_local_id(0)
#define tf_local_size(d) ((int32_t)get_local_size(d))
#define tf_group_id(d) get_group_id(d)
#define tf_group_count(d) get_num_groups(d)
#define tf_atomic_add_int32(p, v) atomic_add((volatile __global int *)(p), v)
#define tf_atomic_exchange_int32(p, v) atomic_xchg((volatile __global int *)(p), v)
#define tf_atomic_exchange_if_int32(p, expected, v) atomic_cmpxchg((volatile __global int *)(p), expected, v)

static inline float tf_float32_from_float16(uint16_t bits) {
  return vload_half(0, (const half *)&bits);
}

static inline uint16_t tf_float16_from_float32(float x) {
  uint16_t bits;
  vstore_half_rte(x, 0, (half *)&bits);
  return bits;
}

#elif defined(__CUDACC__)

#define TF_KERNEL extern "C" __global__ void
#define TF_KERNEL_OF(x, y, z) extern "C" __global__ void __launch_bounds__((x) * (y) * (z))
#define TF_UNROLL _Pragma("unroll")
#define TF_GLOBAL
#define TF_LOCAL
#define TF_RESTRICT __restrict__
#define TF_SHARED __shared__
#define TF_INLINE static inline
#define tf_barrier() __syncthreads()
#define tf_axis(v, d) ((d) == 0 ? v.x : (d) == 1 ? v.y : v.z)
#define tf_global_id(d) ((int64_t)tf_axis(blockIdx, d) * tf_axis(blockDim, d) + tf_axis(threadIdx, d))
#define tf_global_size(d) ((int64_t)tf_axis(gridDim, d) * tf_axis(blockDim, d))
#define tf_local_id(d) ((int32_t)tf_axis(threadIdx, d))
#define tf_lane() ((int32_t)threadIdx.x)
#define tf_local_size(d) ((int32_t)tf_axis(blockDim, d))
#define tf_group_id(d) ((int64_t)tf_axis(blockIdx, d))
#define tf_group_count(d) ((int64_t)tf_axis(gridDim, d))
#define tf_atomic_add_int32(p, v) atomicAdd((int *)(p), v)
#define tf_atomic_exchange_int32(p, v) atomicExch((int *)(p), v)
#define tf_atomic_exchange_if_int32(p, expected, v) atomicCAS((int *)(p), expected, v)

#if defined(__CUDA_ARCH__) /* a compiler for the CPU, which tests put these sources to, has functions of its own */
static inline float tf_float32_from_float16(uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

static inline uint16_t tf_float16_from_float32(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
#endif

#endif

/* A kernel whose work-items each read from positions of their own. Intel's CPU runtime makes vectors of neighbouring
 * work-items, and there loads from many positions are slower than one load after the other. */
#if defined(cl_intel_vec_len_hint)
#define TF_SCALAR_KERNEL __attribute__((intel_vec_len_hint(1))) TF_KERNEL
#else
#define TF_SCALAR_KERNEL TF_KERNEL
#endif

static inline float tf_float32_from_bfloat16(uint16_t bits) {
  return tf_f32_of_bits((int32_t)((uint32_t)bits << 16));
}

/* Rounded to nearest, ties to even; a NaN stays one. */
static inline uint16_t tf_bfloat16_from_float32(float x) {
  uint32_t bits = (uint32_t)tf_bits_of_f32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Loads and stores are macros, so that an index keeps its width: compilers find neighbours among 32-bit indices. */
#define TF_STORED_AS(dtype, storage, value) \
  typedef storage tf_storage_##dtype;       \
  typedef value tf_value_##dtype;
TF_STORED_AS(float32, float, float)
TF_STORED_AS(int8, int8_t, int8_t)
TF_STORED_AS(int16, int16_t, int16_t)
TF_STORED_AS(int32, int32_t, int32_t)
TF_STORED_AS(int64, int64_t, int64_t)
TF_STORED_AS(uint8, uint8_t, uint8_t)
TF_STORED_AS(uint16, uint16_t, uint16_t)
TF_STORED_AS(uint32, uint32_t, uint32_t)
TF_STORED_AS(uint64, uint64_t, uint64_t)
TF_STORED_AS(bool, uint8_t, uint8_t)
TF_STORED_AS(float16, uint16_t, float)
TF_STORED_AS(bfloat16, uint16_t, float)
#ifndef TF_NO_FLOAT64
TF_STORED_AS(float64, double, double)
#endif
#define tf_load_float32(p, i) ((p)[i])
#define tf_store_float32(p, i, value) ((p)[i] = (float)(value))
#define tf_load_int8(p, i) ((p)[i])
#define tf_store_int8(p, i, value) ((p)[i] = (int8_t)(value))
#define tf_load_int16(p, i) ((p)[i])
#define tf_store_int16(p, i, value) ((p)[i] = (int16_t)(value))
#define tf_load_int32(p, i) ((p)[i])
#define tf_store_int32(p, i, value) ((p)[i] = (int32_t)(value))
#define tf_load_int64(p, i) ((p)[i])
#define tf_store_int64(p, i, value) ((p)[i] = (int64_t)(value))
#define tf_load_uint8(p, i) ((p)[i])
#define tf_store_uint8(p, i, value) ((p)[i] = (uint8_t)(value))
#define tf_load_uint16(p, i) ((p)[i])
#define tf_store_uint16(p, i, value) ((p)[i] = (uint16_t)(value))
#define tf_load_uint32(p, i) ((p)[i])
#define tf_store_uint32(p, i, value) ((p)[i] = (uint32_t)(value))
#define tf_load_uint64(p, i) ((p)[i])
#define tf_store_uint64(p, i, value) ((p)[i] = (uint64_t)(value))
#define tf_load_bool(p, i) ((p)[i])
#define tf_store_bool(p, i, value) ((p)[i] = (uint8_t)(value))
#define tf_load_float64(p, i) ((p)[i])
#define tf_store_float64(p, i, value) ((p)[i] = (double)(value))
#define tf_load_float16(p, i) tf_float32_from_float16((p)[i])
#define tf_store_float16(p, i, value) ((p)[i] = tf_float16_from_float32(value))
#define tf_load_bfloat16(p, i) tf_float32_from_bfloat16((p)[i])
#define tf_store_bfloat16(p, i, value) ((p)[i] = tf_bfloat16_from_float32(value))

#ifndef INDEX
#define INDEX int32
#endif
typedef TF_VALUE(INDEX) tf_index;

/* Every work-item takes element i, and those that lie a whole launch further on. */
#define TF_EACH(i, count) for (tf_index i = (tf_index)tf_global_id(0); i < (count); i += (tf_index)tf_global_size(0))

/* The same in the second dimension of a launch. */
#define TF_EACH_ROW(row, rows) \
  for (tf_index row = (tf_index)tf_global_id(1); row < (rows); row += (tf_index)tf_global_size(1))

/* Reports an error of node number `node` (from 1) into the status words {node, reason, detail[4]}: the first stays.
 * Which one is first is left to chance where several work-items report. */
static inline void tf_report_details(TF_GLOBAL int64_t *status, int64_t node, int64_t reason, int64_t detail0,
                                     int64_t detail1, int64_t detail2, int64_t detail3) {
  if (tf_atomic_exchange_if_int32(status, 0, (int32_t)node) == 0) {
    status[1] = reason;
    status[2] = detail0;
    status[3] = detail1;
    status[4] = detail2;
    status[5] = detail3;
  }
}

/* tf_report_details for reasons with three details or fewer. */
static inline void tf_report(TF_GLOBAL int64_t *status, int64_t node, int64_t reason, int64_t detail0, int64_t detail1,
                             int64_t detail2) {
  tf_report_details(status, node, reason, detail0, detail1, detail2, 0);
}

#endif
