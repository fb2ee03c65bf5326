"""Max(13) of onnxruntime-ggml: the third input has no effect.

Seen with onnxruntime-ggml 0.2.0, onnxruntime 1.30.0. Needs onnxruntime, onnx, numpy and onnxruntime-ggml.
Status 1: the output is wrong.
"""

import sys

import numpy as np
import onnxruntime as ort
import onnxruntime_ggml
from onnx import TensorProto, helper

ort.register_execution_provider_library("judged", str(onnxruntime_ggml.library_path()))
names = ["a", "b", "c"]
graph = helper.make_graph(
    [helper.make_node("Max", names, ["y"])],
    "case",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in names],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == "judged"][:1], {"device": "cpu"})
session = ort.InferenceSession(model.SerializeToString(), options)
feeds = {n: np.array(x, np.float32) for n, x in zip(names, ([3, 2, 1], [1, 4, 4], [2, 5, 3]), strict=True)}
got = session.run(None, feeds)[0]
print("got", got, "expected", np.maximum.reduce(list(feeds.values())))
sys.exit(not np.array_equal(got, np.maximum.reduce(list(feeds.values()))))
