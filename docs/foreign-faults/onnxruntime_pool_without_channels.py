"""MaxPool(12) of no channels: no session with CPUExecutionProvider, unless optimizations are off.

Seen with onnxruntime 1.32.0 on x86-64. Needs onnxruntime and onnx. Status 1: it is still so.
"""

import sys

import onnxruntime as ort
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
    "case",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 0, 4, 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 0, 2, 2])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
failed = False
for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    try:
        ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        print(level, "a session")
    except Exception as e:
        print(level, e)
        failed = True
sys.exit(failed)
