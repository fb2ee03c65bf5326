"""OpenVINO's provider cannot load the model with EPContext nodes that it has written for its CPU.

Seen with onnxruntime-openvino 1.24.1 (EP_FAIL: Unhandled exception type: 1).
Needs onnxruntime-openvino, onnx and numpy. Status 1: it is still so.
"""

import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

PROVIDER = ("OpenVINOExecutionProvider", {"device_type": "CPU"})
model = helper.make_model(
    helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    ),
    opset_imports=[helper.make_opsetid("", 21)],
    ir_version=10,
)
options = ort.SessionOptions()
options.add_provider(*PROVIDER)
compiler = ort.ModelCompiler(options, model.SerializeToString(), embed_compiled_data_into_model=True)
compiled = compiler.compile_to_bytes()
x = np.array([1.0, -2.0, 3.0], np.float32)
try:
    (y,) = ort.InferenceSession(compiled, providers=[PROVIDER]).run(None, {"x": x})
except Exception as e:
    print(f"{type(e).__name__}: {e}")
    print("wrong: the compiled model cannot be loaded")
    sys.exit(1)
print(y)
sys.exit(int(not np.array_equal(y, np.maximum(x, 0))))
