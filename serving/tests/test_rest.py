"""TensorFlow Serving's REST API, as its clients use it."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf

PREDICT = "/v1/models/double:predict"


def test_rows_give_predictions(doubling: Any) -> None:
    status, body, _ = doubling.http(PREDICT, {"instances": [[1, 2], [3, 4.5]]})
    assert (status, body) == (200, {"predictions": [[2.0, 4.0], [6.0, 9.0]]})


def test_rows_may_name_their_inputs(doubling: Any) -> None:
    status, body, _ = doubling.http(PREDICT, {"signature_name": "serving_default", "instances": [{"x": [1, 2]}]})
    assert (status, body) == (200, {"predictions": [[2.0, 4.0]]})


@pytest.mark.parametrize("inputs", [[[1, 2]], {"x": [[1, 2]]}])
def test_columns_give_outputs(doubling: Any, inputs: Any) -> None:
    assert doubling.http(PREDICT, {"inputs": inputs})[:2] == (200, {"outputs": [[2.0, 4.0]]})


@pytest.mark.parametrize("part", ["/versions/1", "/versions/0", "/labels/stable"])
def test_a_version_is_asked_by_number_or_label(doubling: Any, part: str) -> None:
    assert doubling.http(f"/v1/models/double{part}:predict", {"instances": [[1, 2]]})[0] == 200


def test_numbers_that_are_not_finite_go_in_and_out(doubling: Any) -> None:
    body = b'{"instances": [[NaN, Infinity]]}'
    status, found, _ = doubling.http(PREDICT, body)
    assert status == 200
    assert np.isnan(found["predictions"][0][0])
    assert found["predictions"][0][1] == float("inf")


def test_a_compressed_body_is_read(doubling: Any) -> None:
    body = gzip.compress(json.dumps({"instances": [[1, 2]]}).encode())
    assert doubling.http(PREDICT, body, {"Content-Encoding": "gzip"})[0] == 200


def test_status_says_which_versions_serve(doubling: Any) -> None:
    _, body, _ = doubling.http("/v1/models/double")
    assert body == {
        "model_version_status": [
            {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
        ]
    }


def test_metadata_has_the_signatures(doubling: Any) -> None:
    _, body, _ = doubling.http("/v1/models/double/metadata")
    assert body["model_spec"]["version"] == "1"
    signature = body["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert [d["size"] for d in signature["inputs"]["x"]["tensor_shape"]["dim"]] == ["-1", "2"]


WRONG: list[tuple[str, Any, int, str]] = [
    ("/v1/models/none:predict", {"instances": [1]}, 404, "model 'none': is not known"),
    ("/v1/models/double/versions/9:predict", {"instances": [[1, 2]]}, 404, "version 9 is not served; 1 are"),
    ("/v1/models/double/versions/x:predict", {"instances": [[1, 2]]}, 400, "a whole number is required"),
    ("/v1/models/double/labels/none:predict", {"instances": [[1, 2]]}, 404, r"its labels are ['next', 'stable']"),
    ("/v1/models/double/labels/next:predict", {"instances": [[1, 2]]}, 412, "version 2 is not served"),
    (PREDICT, {"instances": [[1, 2, 3]]}, 400, "input 'x' has shape (1, 3); (?, 2) is required"),
    (PREDICT, {"instances": [["a", "b"]]}, 400, "input 'x': holds strings; float32 is required"),
    (PREDICT, {"instances": [[True, False]]}, 400, "holds booleans"),
    (PREDICT, {"instances": [[None, 1]]}, 400, "holds null"),
    (PREDICT, {"instances": [[1e300, 1]]}, 400, "a number too large for float32"),
    (PREDICT, {"instances": [[1, 2], [3]]}, 400, "different lengths or depths"),
    (PREDICT, {"instances": []}, 400, "'instances' is empty"),
    (PREDICT, {"instances": [{"z": [1, 2]}]}, 400, "inputs are 'z'; signature 'serving_default' requires 'x'"),
    (PREDICT, {"instances": [[1, 2]], "inputs": [[1, 2]]}, 400, "both or none"),
    (PREDICT, {"signature_name": "none", "instances": [[1, 2]]}, 400, "has no signature 'none'"),
    (PREDICT, {"signature_name": 3, "instances": [[1, 2]]}, 400, "a string is required"),
    (PREDICT, [1], 400, "is no JSON object"),
    (PREDICT, b"{", 400, "is no JSON"),
    (PREDICT, b"[" * 100_000, 400, "is no JSON"),
    ("/v1/models/double:classify", {"examples": [{"a": 1}]}, 400, "'tensorflow/serving/classify'"),
    ("/v1/models/double:nothing", {}, 400, "POST of :predict, :classify or :regress"),
    ("/nothing", None, 404, "nothing is at '/nothing'"),
]


@pytest.mark.parametrize(("path", "body", "status", "words"), WRONG)
def test_a_wrong_request_learns_what_is_wrong(doubling: Any, path: str, body: Any, status: int, words: str) -> None:
    found, answer, _ = doubling.http(path, body)
    assert found == status, answer
    assert words in answer["error"]


def _texts() -> Any:
    text = tf.placeholder(tf.string, [None], name="text")
    number = tf.placeholder(tf.int32, [None], name="number")
    joined = tf.string_join([text, tf.as_string(number)])
    outputs = {"joined": joined, "joined_bytes": tf.identity(joined), "next": number + 1}
    return {"serving_default": ({"text": text, "number": number}, outputs, "tensorflow/serving/predict")}


def test_strings_bytes_and_several_inputs_and_outputs(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save_with(tmp_path / "texts" / "1", _texts)
    server = serve({"texts": tmp_path / "texts"})
    raw = b"\xff\x00"
    instances = [{"text": "a", "number": 1}, {"text": {"b64": base64.b64encode(raw).decode()}, "number": 2}]
    _, body, _ = server.http("/v1/models/texts:predict", {"instances": instances})
    first, second = body["predictions"]
    assert first == {"joined": "a1", "joined_bytes": {"b64": base64.b64encode(b"a1").decode()}, "next": 2}
    assert base64.b64decode(second["joined"]["b64"]) == raw + b"2"
    columns = {"inputs": {"text": ["a", "b"], "number": [1, 2]}}
    assert server.http("/v1/models/texts:predict", columns)[1]["outputs"]["next"] == [2, 3]
    wrong = {"inputs": {"text": [{"b64": "?"}], "number": [2**31]}}
    assert server.http("/v1/models/texts:predict", wrong)[0] == 400
    wrong = {"inputs": {"text": ["a"], "number": [2**31]}}
    assert "int32 is required, from" in server.http("/v1/models/texts:predict", wrong)[1]["error"]


def examples() -> Any:
    """Builds a classifier and a regression of examples with the feature `value`."""
    given = tf.placeholder(tf.string, [None], name="examples")
    value = tf.parse_example(given, {"value": tf.FixedLenFeature([1], tf.float32)})["value"]
    scores = tf.concat([value, 1.0 - value], axis=1)
    classes = tf.tile(tf.constant([["yes", "no"]]), [tf.shape(value)[0], 1])
    return {
        "classify": ({"inputs": given}, {"classes": classes, "scores": scores}, "tensorflow/serving/classify"),
        "regress": ({"inputs": given}, {"outputs": value[:, 0] * 10.0}, "tensorflow/serving/regress"),
    }


def test_examples_are_classified_and_regressed(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save_with(tmp_path / "examples" / "1", examples)
    server = serve({"examples": tmp_path / "examples"})
    asked = {"signature_name": "classify", "examples": [{"value": 0.75}, {"value": 0.5}]}
    status, body, _ = server.http("/v1/models/examples:classify", asked)
    assert (status, body) == (200, {"results": [[["yes", 0.75], ["no", 0.25]], [["yes", 0.5], ["no", 0.5]]]})
    asked = {"signature_name": "regress", "context": {"value": [0.5]}, "examples": [{}]}
    assert server.http("/v1/models/examples:regress", asked)[1] == {"results": [5.0]}
    missing = {"signature_name": "regress", "examples": [{"other": "x"}]}
    status, body, _ = server.http("/v1/models/examples:regress", missing)
    assert status == 400
    assert "value" in body["error"]


def test_a_scalar_output_has_no_rows(serve: Any, helpers: Any, tmp_path: Path) -> None:
    def total() -> Any:
        x = tf.placeholder(tf.float32, [None], name="x")
        return {"serving_default": ({"x": x}, {"sum": tf.reduce_sum(x)}, "tensorflow/serving/predict")}

    helpers.save_with(tmp_path / "total" / "1", total)
    server = serve({"total": tmp_path / "total"})
    assert server.http("/v1/models/total:predict", {"inputs": [1, 2.5]})[1] == {"outputs": 3.5}
    assert "ask with 'inputs'" in server.http("/v1/models/total:predict", {"instances": [1]})[1]["error"]
