"""TensorFlow Serving's gRPC services, as its clients use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from timberframe_core.graphdef import messages as graph_messages
from timberframe_core.graphdef.tensors import encode_array, make_ndarray
from timberframe_serving.messages import health, serving
from timberframe_serving.service import Keys

PREDICT = "/tensorflow.serving.PredictionService/Predict"
MODELS = "/tensorflow.serving.ModelService/"
PREDICTION = "/tensorflow.serving.PredictionService/"


def request(model: str = "double", **inputs: Any) -> Any:
    """Returns a PredictRequest."""
    made = serving("PredictRequest")()
    made.model_spec.name = model
    for name, array in inputs.items():
        made.inputs[name].CopyFrom(encode_array(np.asarray(array)))
    return made


def refused(server: Any, method: str, asked: Any, metadata: Any = None) -> grpc.RpcError:
    """Returns the error that a method answers with."""
    with pytest.raises(grpc.RpcError) as caught:
        server.rpc(method, asked, serving("PredictResponse"), metadata)
    return caught.value


def test_a_prediction_lists_its_values_where_clients_look_for_them(doubling: Any) -> None:
    answer = doubling.rpc(PREDICT, request(x=np.float32([[1, 2]])), serving("PredictResponse"))
    assert list(answer.outputs["y"].float_val) == [2.0, 4.0]
    assert make_ndarray(answer.outputs["y"]).tolist() == [[2.0, 4.0]]
    assert (answer.model_spec.version.value, answer.model_spec.signature_name) == (1, "serving_default")


def test_a_prediction_of_a_version_and_of_outputs(doubling: Any) -> None:
    asked = request(x=np.float32([[1, 2]]))
    asked.model_spec.version_label = "stable"
    asked.output_filter.append("y")
    assert list(doubling.rpc(PREDICT, asked, serving("PredictResponse")).outputs) == ["y"]
    asked.output_filter.append("z")
    assert "outputs ['z'] are asked for" in refused(doubling, PREDICT, asked).details()


def test_wrong_predictions_have_codes_and_words(doubling: Any) -> None:
    cases = [
        (request("none", x=np.float32([[1, 2]])), "NOT_FOUND", "model 'none': is not known"),
        (request("", x=np.float32([[1, 2]])), "INVALID_ARGUMENT", "names no model"),
        (request(x=np.int32([[1, 2]])), "INVALID_ARGUMENT", "input 'x' has dtype int32; float32 is required"),
        (request(x=np.float32([1])), "INVALID_ARGUMENT", "input 'x' has shape (1,); (?, 2) is required"),
        (request(), "INVALID_ARGUMENT", "inputs are none; signature 'serving_default' requires 'x'"),
        (b"\xff\xff\xff", "INVALID_ARGUMENT", "do not parse as tensorflow.serving.PredictRequest"),
    ]
    for asked, code, words in cases:
        error = refused(doubling, PREDICT, asked)
        assert error.code().name == code
        assert words in error.details()


def test_a_short_message_for_a_huge_tensor_is_refused(doubling: Any) -> None:
    asked = request()
    asked.inputs["x"].dtype = 1
    for size in (1 << 40, 2):
        asked.inputs["x"].tensor_shape.dim.add(size=size)
    error = refused(doubling, PREDICT, asked)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "at most 1073741824 bytes are taken" in error.details()


def test_metadata_has_the_signatures(doubling: Any) -> None:
    asked = serving("GetModelMetadataRequest")(metadata_field=["signature_def"])
    asked.model_spec.name = "double"
    answer = doubling.rpc(PREDICTION + "GetModelMetadata", asked, serving("GetModelMetadataResponse"))
    found = answer.metadata["signature_def"]
    assert found.type_url.endswith("/tensorflow.serving.SignatureDefMap")
    signatures = serving("SignatureDefMap").FromString(found.value)
    assert signatures.signature_def["serving_default"].inputs["x"].dtype == 1


def test_status_has_states_and_errors(doubling: Any) -> None:
    asked = serving("GetModelStatusRequest")()
    asked.model_spec.name = "double"
    (found,) = doubling.rpc(MODELS + "GetModelStatus", asked, serving("GetModelStatusResponse")).model_version_status
    assert (found.version, found.state) == (1, 30)


def test_examples_are_classified_and_regressed_together(serve: Any, helpers: Any, tmp_path: Path) -> None:
    from test_rest import examples

    helpers.save_with(tmp_path / "examples" / "1", examples)
    server = serve({"examples": tmp_path / "examples"})
    asked = serving("MultiInferenceRequest")()
    example = graph_messages.Example()
    example.features.feature["value"].float_list.value.append(0.75)
    asked.input.example_list.examples.append(example)
    for kind in ("classify", "regress"):
        task = asked.tasks.add(method_name=f"tensorflow/serving/{kind}")
        task.model_spec.name, task.model_spec.signature_name = "examples", kind
    answer = server.rpc(PREDICTION + "MultiInference", asked, serving("MultiInferenceResponse"))
    first, second = answer.results
    assert [(c.label, c.score) for c in first.classification_result.classifications[0].classes] == [
        ("yes", 0.75),
        ("no", 0.25),
    ]
    assert second.regression_result.regressions[0].value == 7.5
    one = serving("ClassificationRequest")()
    one.model_spec.CopyFrom(asked.tasks[0].model_spec)
    one.input.CopyFrom(asked.input)
    answer = server.rpc(PREDICTION + "Classify", one, serving("ClassificationResponse"))
    assert answer.result.classifications[0].classes[0].label == "yes"
    assert answer.model_spec.version.value == 1


def test_a_configuration_is_put_in_place_of_another(serve: Any, helpers: Any, tmp_path: Path) -> None:
    for name, factor in (("a", 2.0), ("b", 5.0)):
        helpers.save(tmp_path / name / "1", factor)
    server = serve({"a": tmp_path / "a"})
    asked = serving("ReloadConfigRequest")()
    asked.config.model_config_list.config.add(name="b", base_path=str(tmp_path / "b"))
    answer = server.rpc(MODELS + "HandleReloadConfigRequest", asked, serving("ReloadConfigResponse"))
    assert answer.status.error_code == 0
    assert server.http("/v1/models/b:predict", {"instances": [[1, 2]]})[1] == {"predictions": [[5.0, 10.0]]}
    assert server.http("/v1/models/a:predict", {"instances": [[1, 2]]})[0] == 404
    asked.config.model_config_list.config.add(name="c", base_path=str(tmp_path / "c"))
    answer = server.rpc(MODELS + "HandleReloadConfigRequest", asked, serving("ReloadConfigResponse"))
    assert answer.status.error_code == 14
    assert "no version in" in answer.status.error_message


def test_health_needs_no_key_and_all_else_does(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    (tmp_path / "keys").write_text("# ours\nsecret\n")
    server = serve({"double": tmp_path / "double"}, keys=Keys.read(tmp_path / "keys"))
    check = health("HealthCheckRequest")()
    assert server.rpc("/grpc.health.v1.Health/Check", check, health("HealthCheckResponse")).status == 1
    asked = request(x=np.float32([[1, 2]]))
    assert refused(server, PREDICT, asked).code() is grpc.StatusCode.UNAUTHENTICATED
    assert "is not known" in refused(server, PREDICT, asked, [("x-api-key", "other")]).details()
    given = [("authorization", "Bearer secret")]
    assert server.rpc(PREDICT, asked, serving("PredictResponse"), given).outputs["y"].float_val[0] == 2.0
    body = {"instances": [[1, 2]]}
    assert server.http("/v1/models/double:predict", body)[0] == 401
    assert server.http("/v1/models/double:predict", body, {"x-api-key": "secret"})[0] == 200
    assert server.http("/metrics")[0] == 401
    assert server.http("/readyz")[0] == 200
