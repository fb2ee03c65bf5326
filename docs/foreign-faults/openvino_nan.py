"""Relu(14), Clip(13) and Softmax(13) of OpenVINO's provider on its CPU pass over NaN.

Seen with onnxruntime-openvino 1.24.1. Needs onnxruntime-openvino, onnx and numpy. Status 1: it is still so.
"""

import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

PROVIDER = ("OpenVINOExecutionProvider", {"device_type": "CPU"})
x = np.array([[1.0, np.nan, -2.0, 3.0]], np.float32)
wrong = False
for op in ("Relu", "Clip", "Softmax"):
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "low", "high"] if op == "Clip" else ["x"], ["y"])],
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
        [
            helper.make_tensor("low", TensorProto.FLOAT, [], [0.0]),
            helper.make_tensor("high", TensorProto.FLOAT, [], [6.0]),
        ]
        if op == "Clip"
        else [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (y,) = ort.InferenceSession(model.SerializeToString(), providers=[PROVIDER]).run(None, {"x": x})
    print(op, "of", x, "is", y)
    wrong |= not np.isnan(y if op == "Softmax" else y[0, 1]).all()  # each of a row depends on all of it
sys.exit(int(wrong))
