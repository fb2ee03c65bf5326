"""ReduceMean(18) of CPUExecutionProvider: other bits with three threads than with one.

Seen with onnxruntime 1.32.0 on x86-64. Needs onnxruntime, onnx and numpy. Status 1: the bits differ.
"""

import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

graph = helper.make_graph(
    [helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0)],
    "case",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 16, 16, 4])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
    [numpy_helper.from_array(np.array([1, 2], np.int64), "axes")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
x = np.random.default_rng(1).normal(size=(2, 16, 16, 4)).astype(np.float32)
found = []
for threads in (1, 3):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found.append(session.run(None, {"x": x})[0])
print("elements that differ:", int((found[0] != found[1]).sum()), "of", found[0].size)
sys.exit(not np.array_equal(*found))
