"""Relu(14) of nxrt's cpu_ep: an error where the tensor has no elements.

Seen with nxrt-ep-cpu 0.1.0.dev6, onnxruntime 1.32.0. Needs onnxruntime, onnx, numpy and nxrt-ep-cpu.
Status 1: it is still so.
"""

import sys

import numpy as np
import nxrt_ep_cpu
import onnxruntime as ort
from onnx import TensorProto, helper

ort.register_execution_provider_library("judged", str(nxrt_ep_cpu.get_library_path()))
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["y"])],
    "case",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [0, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [0, 3])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == "cpu_ep"][:1], {})
session = ort.InferenceSession(model.SerializeToString(), options)
try:
    print(session.run(None, {"x": np.zeros((0, 3), np.float32)})[0].shape)
except Exception as e:
    sys.exit(str(e))
