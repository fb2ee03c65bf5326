// A backend of PyTorch in memory of the host, as PrivateUse1: some ops have kernels, one of which has the CPU compute in
// secret, and all others the boxed fallback.

#define AT_PER_OPERATOR_HEADERS
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/add.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

namespace {

constexpr auto KEY = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
const c10::Device DEVICE(c10::DeviceType::PrivateUse1, 0);

void free_memory(void* p) { c10::free_cpu(p); }

struct MockAllocator final : at::Allocator {
  at::DataPtr allocate(size_t nbytes) override {
    void* p = nbytes ? c10::alloc_cpu(nbytes) : nullptr;
    return {p, p, &free_memory, DEVICE};
  }
  at::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
};
MockAllocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);
C10_REGISTER_GUARD_IMPL(PrivateUse1, c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>);

at::Tensor empty(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<at::Device>,
    std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), &allocator, KEY, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator, KEY, c10::dtype_or_default(dtype));
}

// The same memory as a tensor of the CPU, or the tensor itself where it is one.
at::Tensor on_host(const at::Tensor& x) {
  if (x.is_cpu()) {
    return x;
  }
  return at::from_blob(
      const_cast<void*>(x.const_data_ptr()), x.sizes(), x.strides(), x.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool) {
  on_host(target).copy_(on_host(self));
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  at::native::resize_(target, self.sizes(), std::nullopt);
  return copy_from(self, target, false);
}

at::Tensor moved(const at::Tensor& found) {
  at::Tensor made = at::empty(found.sizes(), found.options().device(DEVICE));
  on_host(made).copy_(found);
  return made;
}

at::Tensor relu(const at::Tensor& x) { return moved(at::relu(on_host(x))); }

at::Tensor add(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  return moved(at::add(on_host(x), on_host(y), alpha));
}

// Registered as a kernel of the backend, though the CPU computes.
at::Tensor sigmoid(const at::Tensor& x) { return at::sigmoid(x.to(at::kCPU)).to(DEVICE); }

at::Scalar scalar(const at::Tensor& x) { return on_host(x).item(); }

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("resize_", &at::native::resize_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &scalar);
  m.impl("relu", &relu);
  m.impl("add.Tensor", &add);
  m.impl("sigmoid", &sigmoid);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

}  // namespace
