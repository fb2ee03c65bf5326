"""Relu(14) of a tensor without elements ends the process in QNN's provider: division by zero, when the session is made.

Seen with onnxruntime-qnn 2.7.0, onnxruntime 1.32.0. Needs onnxruntime, onnx, numpy and onnxruntime-qnn.
The process ends by SIGFPE as long as it is so, and else with status 0.
"""

import onnxruntime as ort
import onnxruntime_qnn
from onnx import TensorProto, helper

ort.register_execution_provider_library("judged", str(onnxruntime_qnn.get_library_path()))
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["y"])],
    "case",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [0])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [0])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
devices = [d for d in ort.get_ep_devices() if d.ep_name == "judged"]
options.add_provider_for_devices(devices[:1], {"backend_type": "htp"})
try:
    ort.InferenceSession(model.SerializeToString(), options)
except Exception as e:  # a refusal is no crash
    print(e)
