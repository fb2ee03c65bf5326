"""The needs of those who run a server: flags, metrics, logs, health, TLS, and an orderly end."""

from __future__ import annotations

import json
import logging
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from timberframe_core.errors import InvalidArgumentError, OpError
from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving import flags
from timberframe_serving.batching import BatchingSettings
from timberframe_serving.logs import JsonLines
from timberframe_serving.manager import ManagerSettings
from timberframe_serving.messages import serving
from timberframe_serving.models import LoadedModel, LoadSettings, load_model
from timberframe_serving.server import Hosting

PREDICT = "/v1/models/double:predict"
BODY = {"instances": [[1, 2]]}


def test_metrics_have_tensorflow_servings_names(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"})
    for _ in range(3):
        server.http(PREDICT, BODY)
    server.http(PREDICT, {"instances": [["a"]]})
    server.http("/v1/models/made-up:predict", BODY)
    text = server.http("/monitoring/prometheus/metrics")[1].decode()
    assert ':tensorflow:serving:request_count{model_name="double",status="OK"} 3' in text
    assert ':tensorflow:serving:request_count{model_name="double",status="INVALID_ARGUMENT"} 1' in text
    assert ':tensorflow:serving:request_count{model_name="unknown",status="NOT_FOUND"} 1' in text
    labels = 'model_name="double",API="REST",entrypoint="Predict"'
    assert f':tensorflow:serving:request_latency_bucket{{{labels},le="10"}}' in text
    assert f":tensorflow:serving:request_latency_count{{{labels}}} 3" in text
    assert 'timberframe_serving_in_flight{model_name="double",version="1"} 0' in text
    line = re.compile(r'(# (HELP|TYPE) \S+ .+|[a-zA-Z_:][\w:]*(\{(\w+="[^"]*",?)*\})? [-+\d.e]+)')
    assert [t for t in text.splitlines() if not line.fullmatch(t)] == []
    buckets = [float(t.split()[-1]) for t in text.splitlines() if t.startswith(":tensorflow:serving:request_latency_b")]
    assert len(buckets) == 34
    assert buckets == sorted(buckets)


def test_a_request_keeps_its_id(doubling: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "timberframe_serving")
    _, _, headers = doubling.http(PREDICT, {"instances": []}, {"X-Request-Id": "abc-1"})
    assert headers["x-request-id"] == "abc-1"
    record = next(r for r in caplog.records if r.message == "request")
    assert vars(record)["request_id"] == "abc-1"
    line = json.loads(JsonLines().format(record))
    assert (line["status"], line["path"], line["level"]) == (400, PREDICT, "info")
    assert "'instances' is empty" in line["error"]


@pytest.fixture
def nothing_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every request wait for its batch."""
    monkeypatch.setattr("timberframe_serving.batching.QUICK", 0.0)


@pytest.mark.usefixtures("nothing_is_quick")
def test_a_client_that_goes_away_is_not_computed(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"}, batching=BatchingSettings(batch_timeout=30.0))
    (servable,) = server.service.servables()
    asked = serving("PredictRequest")()
    asked.model_spec.name = "double"
    asked.inputs["x"].CopyFrom(encode_array(np.float32([[1, 2]])))
    with grpc.insecure_channel(f"127.0.0.1:{server.server.grpc_port}") as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        with pytest.raises(grpc.RpcError) as caught:
            call(asked.SerializeToString(), timeout=0.3)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    end = time.monotonic() + 5
    while servable.waiting and time.monotonic() < end:
        time.sleep(0.02)
    assert servable.waiting == 0


@pytest.mark.usefixtures("nothing_is_quick")
def test_a_server_that_stops_answers_what_it_has(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"}, batching=BatchingSettings(batch_timeout=0.5))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(server.http(PREDICT, BODY)))
    thread.start()
    time.sleep(0.2)
    server.stop()
    thread.join()
    assert found[0][:2] == (200, {"predictions": [[2.0, 4.0]]})


def certificate(folder: Path) -> tuple[Path, Path]:
    """Returns the files of a certificate and key for this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_tls_over_http_and_grpc(serve: Any, helpers: Any, tmp_path: Path) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    public, private = certificate(tmp_path)
    hosting = Hosting(http_port=0, grpc_port=0, certificate=public, key=private, stop_seconds=5)
    server = serve({"double": tmp_path / "double"}, hosting=hosting)
    with pytest.raises(OSError, match=r".+"):
        server.http("/v2")
    trusted = ssl.create_default_context(cafile=str(public))
    url = f"https://127.0.0.1:{server.server.http_port}{PREDICT}"
    with urllib.request.urlopen(url, json.dumps(BODY).encode(), context=trusted) as answer:
        assert json.loads(answer.read()) == {"predictions": [[2.0, 4.0]]}
    credentials = grpc.ssl_channel_credentials(public.read_bytes())
    asked = serving("GetModelStatusRequest")()
    asked.model_spec.name = "double"
    with grpc.secure_channel(f"127.0.0.1:{server.server.grpc_port}", credentials) as channel:
        method = channel.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
        assert method(asked.SerializeToString(), timeout=10)


def test_a_server_of_the_command_line(helpers: Any, tmp_path: Path) -> None:
    base = tmp_path / "models"
    helpers.save(base / "double" / "1", 2.0)
    (tmp_path / "batching").write_text("max_batch_size { value: 8 } batch_timeout_micros { value: 100 }")
    command = [
        sys.executable,
        "-m",
        "timberframe_serving",
        "--model_name=double",
        f"--model_base_path={base / 'double'}",
    ]
    command += [
        "--port=0",
        "--host=127.0.0.1",
        "--enable_batching",
        f"--batching_parameters_file={tmp_path / 'batching'}",
    ]
    from clients.check import free_port

    port = free_port()
    with subprocess.Popen([*command, f"--rest_api_port={port}"], stderr=subprocess.PIPE, text=True) as server:
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5)
                    break
                except OSError:
                    assert server.poll() is None
                    assert time.monotonic() < end
                    time.sleep(0.1)
            url = f"http://127.0.0.1:{port}{PREDICT}"
            with urllib.request.urlopen(url, json.dumps(BODY).encode()) as answer:
                assert json.loads(answer.read()) == {"predictions": [[2.0, 4.0]]}
        finally:
            server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=30)
    assert server.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert [x["message"] for x in lines if x["logger"] == "timberframe_serving.manager"] == [
        "version serves",
        "version is unloaded",
    ]


def test_flags_are_read_and_wrong_ones_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        flags.parse([])
    assert "one of --model_base_path" in capsys.readouterr().err
    base = [f"--model_base_path={tmp_path}"]
    file = tmp_path / "batching"
    file.write_text("allowed_batch_sizes: 2 allowed_batch_sizes: 8 num_batch_threads { value: 3 }")
    found = flags.batching_settings(flags.parse([*base, f"--batching_parameters_file={file}"]))
    assert found == BatchingSettings(max_batch_size=8, num_batch_threads=3, allowed_batch_sizes=(2, 8))
    file.write_text("max_batch_sise { value: 3 }")
    with pytest.raises(InvalidArgumentError, match="is no BatchingParameters in text form"):
        flags.batching_settings(flags.parse([*base, f"--batching_parameters_file={file}"]))
    assert not flags.batching_settings(flags.parse([*base, "--enable_batching=false"])).enabled
    assert flags.load_settings(flags.parse([*base, "--memory_limit=CUDA=1000"])).config.memory_limit == {"CUDA": 1000}
    with pytest.raises(InvalidArgumentError, match="memory_limit is 'CUDA'"):
        flags.load_settings(flags.parse([*base, "--memory_limit=CUDA"]))
    assert flags.load_settings(flags.parse([*base, "--allow_soft_placement"])).config.allow_soft_placement
    with pytest.raises(OpError, match="there is no such folder"):
        flags.models(flags.parse(["--model_base_path=/none"]))


def test_a_configuration_file_is_watched(serve: Any, helpers: Any, tmp_path: Path) -> None:
    for name, factor in (("a", 2.0), ("b", 3.0)):
        helpers.save(tmp_path / name / "1", factor)
    file = tmp_path / "models.config"
    file.write_text('model_config_list { config { name: "a" base_path: "a" } }')
    hosting = Hosting(http_port=0, grpc_port=None, configuration=file, configuration_interval=0.05, stop_seconds=5)
    server = serve(flags.read_configuration(file), hosting=hosting, manager=ManagerSettings(poll_interval=0.1))
    file.write_text("damaged")
    time.sleep(0.3)
    assert server.http("/v1/models/a:predict", BODY)[0] == 200
    file.write_text('model_config_list { config { name: "b" base_path: "b" } }')
    end = time.monotonic() + 20
    while server.http("/v1/models/b:predict", BODY)[0] != 200:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert server.http("/v1/models/a:predict", BODY)[0] == 404


OWN = """model_config_list {
  config { name: "plain" base_path: "plain" }
  config { name: "elsewhere" base_path: "elsewhere" runtime { device: "/device:ACME:7" } }
  config { name: "narrow" base_path: "narrow" runtime { memory_limit { key: "CPU" value: 1000 } } }
  config { name: "patient" base_path: "patient" runtime {
    intra_op_parallelism_threads: 1 batching_parameters { batch_timeout_micros { value: 400000 } } } }
}"""


@pytest.mark.usefixtures("nothing_is_quick")
def test_a_model_has_a_device_memory_and_batching_of_its_own(serve: Any, helpers: Any, tmp_path: Path) -> None:
    for name in ("plain", "elsewhere", "narrow", "patient"):
        helpers.save(tmp_path / name / "1", 2.0)
    file = tmp_path / "models.config"
    file.write_text(OWN)
    server = serve(flags.read_configuration(file))
    for name in ("plain", "patient"):
        begin = time.monotonic()
        assert server.http(f"/v1/models/{name}:predict", BODY)[:2] == (200, {"predictions": [[2.0, 4.0]]})
    assert time.monotonic() - begin >= 0.4
    for name, words in (("elsewhere", "ACME"), ("narrow", "1000")):
        status, answer, _ = server.http(f"/v1/models/{name}:predict", {"instances": [[1, 2]] * 1000})
        assert status in (429, 503)
        assert words in answer["error"]


def test_what_a_model_has_of_its_own_must_be_possible(tmp_path: Path) -> None:
    file = tmp_path / "models.config"
    for wrong, words in (
        ("intra_op_parallelism_threads: -1", "intra_op_parallelism_threads is -1; at least 0 is required"),
        ('memory_limit { key: "CPU" value: -5 }', "memory_limit of CPU is -5; at least 0 is required"),
        ("batching_parameters { max_batch_size { value: 0 } }", "max_batch_size is 0; at least 1 is required"),
        ("speed: 3", "speed"),
    ):
        file.write_text(f'model_config_list {{ config {{ name: "a" base_path: "a" runtime {{ {wrong} }} }} }}')
        with pytest.raises(InvalidArgumentError, match=words):
            flags.read_configuration(file)


def test_a_port_that_is_taken_is_an_error(serve: Any, helpers: Any, tmp_path: Path, doubling: Any) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    with pytest.raises(OpError, match="cannot listen on 127"):
        serve({"double": tmp_path / "double"}, hosting=Hosting(http_port=doubling.server.http_port, grpc_port=None))


def test_a_configuration_that_changes_while_models_are_loaded_is_seen(
    serve: Any, helpers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, factor in (("a", 2.0), ("b", 3.0)):
        helpers.save(tmp_path / name / "1", factor)
    file = tmp_path / "models.config"
    file.write_text('model_config_list { config { name: "a" base_path: "a" } }')

    def load(folder: Path, settings: LoadSettings) -> LoadedModel:
        file.write_text('model_config_list { config { name: "b" base_path: "b" } }')
        return load_model(folder, settings)

    monkeypatch.setattr("timberframe_serving.servable.load_model", load)
    hosting = Hosting(http_port=0, grpc_port=None, configuration=file, configuration_interval=0.05, stop_seconds=5)
    server = serve(flags.read_configuration(file), hosting=hosting)
    end = time.monotonic() + 10
    while server.http("/v1/models/b:predict", BODY)[0] != 200:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("ports", [{"http_port": 0, "grpc_port": None}, {"http_port": None, "grpc_port": 0}])
@pytest.mark.parametrize("content", [None, "damaged"])
def test_a_certificate_that_cannot_be_read_ends_the_server(
    serve: Any, helpers: Any, tmp_path: Path, ports: dict[str, int | None], content: str | None
) -> None:
    helpers.save(tmp_path / "double" / "1", 2.0)
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    for file in files:
        if content is not None:
            file.write_text(content)
    hosting = Hosting(**ports, certificate=files[0], key=files[1])
    with pytest.raises(OpError, match=r"does not start|cannot listen"):
        serve({"double": tmp_path / "double"}, hosting=hosting)


def test_the_application_is_hosted_by_any_host_of_asgi(doubling: Any) -> None:
    from timberframe_serving.http.application import Application

    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(BODY).encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        scope = {"type": "http", "method": "POST", "path": PREDICT, "headers": []}
        await Application(doubling.service)(scope, receive, send)

    doubling.call(ask())
    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"]) == {"predictions": [[2.0, 4.0]]}
