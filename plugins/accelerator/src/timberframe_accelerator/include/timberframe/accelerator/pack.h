/* Packs: neighbouring elements that a work-item reads or writes at once, in accesses of up to 16 bytes.
 *
 * TF_PACK(float16, 8) declares tf_pack_float16. Its member `element` is what TF_LOAD and TF_STORE take for a pointer. */
#ifndef TIMBERFRAME_ACCELERATOR_PACK_H
#define TIMBERFRAME_ACCELERATOR_PACK_H

#include <timberframe/accelerator/language.h>

#define TF_PACK_BYTES(dtype, count) (sizeof(tf_storage_##dtype) * (count))
#define TF_PACK_ALIGNMENT(dtype, count) (TF_PACK_BYTES(dtype, count) < 16 ? TF_PACK_BYTES(dtype, count) : 16)
#define TF_PACK(dtype, count)                                                \
  typedef struct __attribute__((aligned(TF_PACK_ALIGNMENT(dtype, count)))) { \
    tf_storage_##dtype element[count];                                       \
  } tf_pack_##dtype;

#define TF_LOAD_PACK(dtype, pointer, index) (*(TF_GLOBAL const tf_pack_##dtype *)((pointer) + (index)))
#define TF_STORE_PACK(dtype, pointer, index, pack) (*(TF_GLOBAL tf_pack_##dtype *)((pointer) + (index)) = (pack))

/* Whether packs may be read and written from this address on. */
#define TF_HOLDS_PACKS(dtype, count, pointer) ((size_t)(pointer) % TF_PACK_ALIGNMENT(dtype, count) == 0)

/* TF_EACH from an element on. */
#define TF_EACH_FROM(first, i, count) \
  for (tf_index i = (first) + (tf_index)tf_global_id(0); i < (count); i += (tf_index)tf_global_size(0))

#endif
