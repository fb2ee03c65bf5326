"""The device JAX: a cluster of nodes becomes one program of XLA, compiled by jax.jit."""

import jax
import numpy as np

import timberframe_sdk as sdk
from timberframe_jax.translations import refusal, translate

timberframe_contract = (2, 0)  # the version of sdk.CONTRACT that this is written for

MEMORY = 1 << 32


class JaxAllocator(sdk.Allocator):
    """XLA allocates the arrays, and the base class keeps the accounts; `raw` serves those who ask for bytes."""

    def __init__(self, device, limit):
        super().__init__(limit)
        self.device = device

    def raw(self, nbytes):
        return jax.device_put(np.empty(nbytes, np.uint8), self.device)


class JaxDevice(sdk.CompilerDevice):
    type, priority, asynchronous = "JAX", 5, True

    def __init__(self, index, device, limit=None):
        super().__init__(index)
        self.device = device
        self.allocator = JaxAllocator(device, limit)
        self.attributes = sdk.DeviceAttributes(
            memory=limit or MEMORY,
            vendor="XLA",
            model=device.device_kind,
            driver=jax.__version__,
            dtypes=("float32", "float64", "int32", "int64", "bool"),
            slow_compile=True,
        )

    def supports(self, node):
        return refusal(node)

    def build(self, function):
        parameters = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in function.parameters]
        with jax.enable_x64(True), jax.default_device(self.device):
            traced = jax.jit(lambda *arrays: function(translate, arrays)).lower(*parameters)
            compiled = traced.compile()
        used = compiled.memory_analysis()
        memory = sdk.Memory(used.generated_code_size_in_bytes, used.temp_size_in_bytes)
        return sdk.Program(lambda arrays: compiled(*arrays), memory)

    def upload(self, x):
        with jax.enable_x64(True):
            # x is the caller's to change; JAX may keep or still read what it gets.
            return jax.device_put(np.array(x), self.device)

    def copy_out(self, a):
        return np.array(a)

    def ready(self, a):
        return a.is_ready()

    def wait(self, a):
        a.block_until_ready()

    def error(self, e):
        if "RESOURCE_EXHAUSTED" in str(e):
            return sdk.ResourceExhaustedError(f"XLA: {e}")
        return super().error(e)


@sdk.hookimpl
def timberframe_devices(config):
    found = jax.devices()
    limit = sdk.memory_limit(config, "JAX", MEMORY)
    return [JaxDevice(i, found[i % len(found)], limit) for i in range(sdk.device_count(config, "JAX", len(found)))]


@sdk.hookimpl
def timberframe_kernels():
    return []
