"""Versions that come and go while a server serves."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.config import SessionConfig
from timberframe_core.errors import InvalidArgumentError, NoKernelError, OpError
from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving.manager import ManagerSettings
from timberframe_serving.messages import serving
from timberframe_serving.models import LoadedModel, LoadSettings, load_model
from timberframe_serving.repository import ModelSettings, VersionPolicy, models_in, read_configuration, versions_in

BODY = {"instances": [[1, 2]]}


def until(condition: Any, seconds: float = 20) -> None:
    """Waits for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def states(server: Any, name: str = "m") -> dict[str, str]:
    """Returns the states of a model's versions."""
    return {v["version"]: v["state"] for v in server.http(f"/v1/models/{name}")[1]["model_version_status"]}


def answer(server: Any, name: str = "m", part: str = "") -> float:
    """Returns what a model makes of 1."""
    status, body, _ = server.http(f"/v1/models/{name}{part}:predict", BODY)
    assert status == 200, body
    return float(body["predictions"][0][0])


def put(helpers: Any, base: Path, number: int, factor: float) -> None:
    """Adds a version as one step, as publishers of models should."""
    helpers.save(base.parent / f"new-{base.name}-{number}", factor)
    (base.parent / f"new-{base.name}-{number}").rename(base / str(number))


def test_a_new_version_takes_over_and_the_old_one_goes(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 2.0)
    server = serve({"m": base})
    assert answer(server) == 2.0
    put(helpers, base, 2, 3.0)
    until(lambda: states(server) == {"2": "AVAILABLE", "1": "END"})
    assert answer(server) == 3.0
    shutil.rmtree(base / "2")
    until(lambda: states(server) == {"2": "END", "1": "AVAILABLE"})
    assert answer(server) == 2.0


def test_no_request_fails_while_versions_change(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 1.0)
    server = serve({"m": base})
    found: list[float] = []
    failed: list[Any] = []
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            try:
                found.append(answer(server))
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in (2, 3, 4):
        put(helpers, base, number, float(number))
        until(lambda n=number: states(server).get(str(n)) == "AVAILABLE")
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert set(found) <= {1.0, 2.0, 3.0, 4.0}
    assert found[-1] == 4.0


@pytest.mark.parametrize("load_first", [True, False])
def test_a_bad_version_never_replaces_a_good_one(serve: Any, helpers: Any, tmp_path: Path, load_first: bool) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 2.0)
    server = serve({"m": base}, manager=ManagerSettings(load_first, poll_interval=0.05))
    (base / "2").mkdir()
    (base / "2" / "saved_model.pb").write_bytes(b"damaged")
    until(lambda: states(server).get("2") == "END")
    until(lambda: states(server)["1"] == "AVAILABLE")
    assert answer(server) == 2.0
    status = server.http("/v1/models/m/versions/2")[1]["model_version_status"][0]["status"]
    assert status["error_code"] == "INVALID_ARGUMENT"
    assert "saved_model.pb" in status["error_message"]
    shutil.rmtree(base / "2")
    put(helpers, base, 2, 3.0)
    until(lambda: states(server)["2"] == "AVAILABLE")
    assert answer(server) == 3.0


def test_a_version_that_is_copied_slowly_is_loaded_when_it_is_whole(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    helpers.save(tmp_path / "whole", 3.0)
    (base / "1").mkdir(parents=True)
    shutil.copy(tmp_path / "whole" / "saved_model.pb", base / "1")
    server = serve({"m": base})
    assert states(server) == {"1": "END"}
    status, body, _ = server.http("/v1/models/m:predict", BODY)
    assert status == 503
    assert "no version serves (version 1:" in body["error"]
    shutil.copytree(tmp_path / "whole" / "variables", base / "1" / "variables")
    until(lambda: states(server) == {"1": "AVAILABLE"})


def test_the_next_best_version_serves_after_a_start_with_a_bad_one(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 2.0)
    (base / "2").mkdir()
    (base / "2" / "saved_model.pb").write_bytes(b"damaged")
    server = serve({"m": base})
    assert states(server) == {"2": "END", "1": "AVAILABLE"}


def test_a_folder_that_vanishes_takes_no_version_with_it(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 2.0)
    server = serve({"m": base})
    base.rename(tmp_path / "elsewhere")
    time.sleep(0.3)
    assert answer(server) == 2.0


def test_policies_and_labels(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    for number in (1, 2, 3):
        helpers.save(base / str(number), float(number))
    (base / "0x4").mkdir()
    models = {
        "two": ModelSettings("two", base, VersionPolicy(latest=2)),
        "all": ModelSettings("all", base, VersionPolicy(every=True)),
        "these": ModelSettings("these", base, VersionPolicy(specific=(1, 3)), {"stable": 1}),
    }
    server = serve(models)
    assert states(server, "two") == {"3": "AVAILABLE", "2": "AVAILABLE"}
    assert states(server, "all") == {"3": "AVAILABLE", "2": "AVAILABLE", "1": "AVAILABLE"}
    assert states(server, "these") == {"3": "AVAILABLE", "1": "AVAILABLE"}
    assert answer(server, "these", "/labels/stable") == 1.0
    assert answer(server, "these") == 3.0


def recorded(folder: Path, *arrays: Any) -> None:
    """Writes requests to warm up with into a version's folder."""
    (folder / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(str(folder / "assets.extra" / "tf_serving_warmup_requests")) as writer:
        for array in arrays:
            log = serving("PredictionLog")()
            log.predict_log.request.model_spec.name = "m"
            log.predict_log.request.inputs["x"].CopyFrom(encode_array(np.asarray(array)))
            writer.write(log.SerializeToString())


def test_recorded_requests_warm_a_version_up(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    recorded(helpers.save(base / "1", 2.0), np.float32([[1, 2]]))
    server = serve({"m": base})
    assert states(server) == {"1": "AVAILABLE"}
    wrong = helpers.save(tmp_path / "wrong", 3.0)
    recorded(wrong, np.float32([[1, 2]]), np.float32([[1, 2, 3]]))
    wrong.rename(base / "2")
    until(lambda: states(server).get("2") == "END")
    assert states(server)["1"] == "AVAILABLE"
    status = server.http("/v1/models/m/versions/2")[1]["model_version_status"][0]["status"]
    assert "input 'x' has shape (1, 3); (?, 2) is required" in status["error_message"]
    text = server.http("/metrics")[1].decode()
    assert f':tensorflow:cc:saved_model:load_attempt_count{{model_path="{base / "2"}",status="fail"}} 1' in text


def test_requests_are_recorded_for_later_versions(serve: Any, helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 2.0)
    file = tmp_path / "requests"
    server = serve({"m": ModelSettings("m", base, sampling_rate=1.0, record_to=str(file))})
    for _ in range(3):
        answer(server)
    logs = [serving("PredictionLog").FromString(r) for r in tf.io.tf_record_iterator(str(file))]
    assert [list(log.predict_log.request.inputs["x"].float_val) for log in logs] == [[1.0, 2.0]] * 3
    helpers.save(tmp_path / "two", 3.0)
    (tmp_path / "two" / "assets.extra").mkdir()
    shutil.copy(file, tmp_path / "two" / "assets.extra" / "tf_serving_warmup_requests")
    (tmp_path / "two").rename(base / "2")
    until(lambda: states(server).get("2") == "AVAILABLE")


@pytest.mark.parametrize("file", ["/dev/full", "/no/such/folder/requests"])
def test_a_file_that_cannot_be_written_stops_the_recording_and_not_the_answers(
    serve: Any, helpers: Any, tmp_path: Path, file: str
) -> None:
    helpers.save(tmp_path / "m" / "1", 2.0)
    server = serve({"m": ModelSettings("m", tmp_path / "m", sampling_rate=1.0, record_to=file)})
    assert [answer(server) for _ in range(3)] == [2.0] * 3


def test_versions_are_looked_for_again_after_an_error(
    serve: Any, helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "m"
    helpers.save(base / "1", 2.0)
    server = serve({"m": base})
    failed = threading.Event()

    def fail(_: Path) -> Any:
        failed.set()
        raise PermissionError("of a folder of a version")

    with monkeypatch.context() as patched:
        patched.setattr("timberframe_serving.manager.versions_in", fail)
        assert failed.wait(20)
    put(helpers, base, 2, 3.0)
    until(lambda: states(server).get("2") == "AVAILABLE")


def test_a_model_runs_on_the_device_that_is_asked_for(
    helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_rest import examples

    with tf.Session() as session:
        if not any(d.spec == "/device:OPENCL:0" for d in session.list_devices()):
            pytest.skip("no OpenCL device is there")
    helpers.save(tmp_path / "double", 2.0)
    sessions: list[Any] = []

    class Kept(tf.Session):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            sessions.append(self)

    with monkeypatch.context() as patched:
        patched.setattr(tf, "Session", Kept)
        loaded = load_model(tmp_path / "double", LoadSettings("/device:OPENCL:0"))
    (y,) = loaded.signatures["serving_default"].call(np.float32([[1, 2]]))
    assert y.tolist() == [[2.0, 4.0]]
    explained = str(sessions[0].explain("y:0", {"x:0": np.float32([[1, 2]])}))
    assert "y (Mul): /device:OPENCL:0, requested" in explained
    loaded.close()
    helpers.save_with(tmp_path / "examples", examples)
    with pytest.raises(NoKernelError, match="strings live in the host's memory"):
        load_model(tmp_path / "examples", LoadSettings("/device:OPENCL:0"))
    soft = LoadSettings("/device:OPENCL:0", config=SessionConfig(allow_soft_placement=True))
    loaded = load_model(tmp_path / "examples", soft)
    example = tf.train.Example()
    example.features.feature["value"].float_list.value.append(0.5)
    (found,) = loaded.signatures["regress"].call(np.array([example.SerializeToString()], object))
    assert found.tolist() == [5.0]
    loaded.close()
    with pytest.raises(OpError, match="device /device:ACME:0 does not exist"):
        load_model(tmp_path / "double", LoadSettings("/device:ACME:0"))


def test_configurations_at_the_same_time_leave_no_model_loaded(
    serve: Any, helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def load(folder: Path, settings: LoadSettings) -> LoadedModel:
        loaded = load_model(folder, settings)
        made.append(folder.parent.name)
        return replace(loaded, close=lambda: (made.remove(folder.parent.name), loaded.close())[1])

    monkeypatch.setattr("timberframe_serving.servable.load_model", load)
    for name in "abc":
        helpers.save(tmp_path / name / "1", 2.0)
    server = serve({"a": tmp_path / "a"})

    async def change() -> None:
        wanted = [{n: ModelSettings(n, tmp_path / n)} for n in "bc"]
        await asyncio.gather(*map(server.service.manager.configure, wanted))

    server.call(change())
    assert made == ["c"]
    assert answer(server, "c") == 2.0


CONFIGURATION = """
model_config_list {
  config {
    name: "a" base_path: "a" model_platform: "tensorflow"
    model_version_policy { specific { versions: 1 versions: 2 } }
    version_labels { key: "stable" value: 1 }
  }
  config { name: "b" base_path: "/models/b" model_version_policy { latest { num_versions: 2 } } }
}
"""


def test_a_configuration_of_tensorflow_serving_is_read(tmp_path: Path) -> None:
    file = tmp_path / "models.config"
    file.write_text(CONFIGURATION)
    found = read_configuration(file)
    assert found["a"].policy == VersionPolicy(specific=(1, 2))
    assert found["a"].labels == {"stable": 1}
    assert found["a"].base_path == tmp_path / "a"
    assert found["b"].policy == VersionPolicy(latest=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model_config_list { config { nam: 'a' } }", "is no ModelServerConfig in text form"),
        ("model_config_list { config { name: '../a' base_path: 'b' } }", "letters, digits"),
        ("model_config_list { config { name: 'a' } }", "base_path is empty"),
        (
            "model_config_list { config { name: 'a' base_path: 'b' } config { name: 'a' base_path: 'b' } }",
            "there twice",
        ),
        ("model_config_list { config { name: 'a' base_path: 'b' model_platform: 'caffe' } }", "tensorflow or onnx"),
    ],
)
def test_a_wrong_configuration_learns_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(InvalidArgumentError, match=words):
        read_configuration(tmp_path / "c")


def test_folders_of_versions_and_of_models(helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "m" / "7", 2.0)
    for name in ("08", "-1", "new", "9"):
        (tmp_path / "m" / name).mkdir()
    assert list(versions_in(tmp_path / "m")) == [7]
    assert list(models_in(tmp_path)) == ["m"]


def test_an_onnx_model_is_served(serve: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("timberframe_onnx")
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"])], "g", [info("x", 1, ["n", 2])], [info("y", 1, ["n", 2])]
    )
    (tmp_path / "m" / "1").mkdir(parents=True)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9),
        tmp_path / "m" / "1" / "model.onnx",
    )
    server = serve({"m": tmp_path / "m"})
    assert answer(server) == 2.0
    assert server.http("/v2/models/m")[1]["platform"] == "onnx_onnxv1"
