"""MaxPool(12) of QNN's provider, in its simulator of HTP: padding counts as zeros, so that no maximum is negative.

Seen with onnxruntime-qnn 2.7.0, onnxruntime 1.32.0. Needs onnxruntime, onnx, numpy and onnxruntime-qnn.
Status 1: it is still so.
"""

import sys

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn
from onnx import TensorProto, helper

ort.register_execution_provider_library("judged", str(onnxruntime_qnn.get_library_path()))
graph = helper.make_graph(
    [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])],
    "case",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2, 2])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 2, 2])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
devices = [d for d in ort.get_ep_devices() if d.ep_name == "judged"]
options.add_provider_for_devices(devices[:1], {"backend_type": "htp"})
session = ort.InferenceSession(model.SerializeToString(), options)
x = np.array([[[[-4.0, -3.0], [-2.0, -1.0]]]], np.float32)
(y,) = session.run(None, {"x": x})
print(y.reshape(2, 2), "must be -1 everywhere")
sys.exit(int(not (y == -1).all()))
