"""Sigmoid(13) of CPUExecutionProvider: far from 1 / (1 + exp(-x)) below -10, and 0 below -18.

Seen with onnxruntime 1.32.0 on x86-64. Needs onnxruntime, onnx and numpy. Status 1: the outputs are wrong.
"""

import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Sigmoid", ["x"], ["y"])],
    "case",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
x = np.array([-5, -8, -12, -16, -20], np.float32)
y = session.run(None, {"x": x})[0]
true = 1 / (1 + np.exp(-x.astype(np.float64)))
off = np.abs(y - true) / true
for row in zip(x.tolist(), y.tolist(), true.tolist(), off.tolist(), strict=True):
    print("x {:5.0f}  got {:.6g}  true {:.6g}  off by {:.3%}".format(*row))
sys.exit(bool((off > 1e-5).any()))
