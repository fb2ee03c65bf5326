"""Kernels compiled in advance, without a GPU, are what a program finds on a machine with one, and cost it no time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import timberframe as tf

with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as session:
    x = tf.placeholder(tf.float32, [4, 3])
    y = tf.cumsum(tf.nn.softmax(tf.matmul(x, tf.constant(np.ones((3, 3), np.float32)))), axis=1)
    print(session.run(y, {x: np.ones((4, 3))})[0].tolist())
"""


@pytest.mark.slow
def test_a_program_finds_the_kernels_that_were_compiled_without_a_gpu(
    emulated_environment: dict[str, str], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = emulated_environment | {"TIMBERFRAME_PLUGINS": "cpu,cuda", "TIMBERFRAME_CACHE": str(tmp_path)}

    def run(*arguments: str, **variables: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment | variables, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    precompile = "-m", "timberframe_cuda", "precompile", "--arch", "sm_80", str(program)
    lines = run(*precompile, EMULATED_GPUS="0").splitlines()
    assert lines == ["[0.0, 0.0, 0.0]", "2 sources for sm_80, 0 refused"]
    assert run(str(program), CXX="/bin/false") == "[0.3333333432674408, 0.6666666865348816, 1.0]\n"


@pytest.mark.slow
def test_a_first_run_with_a_full_cache_compiles_nothing(emulator: None) -> None:
    """By the command that measures it."""
    import nvrtc

    if nvrtc.library() is None:
        pytest.skip("NVRTC is not installed; the package nvidia-cuda-nvrtc has it")
    command = [sys.executable, str(Path(__file__).with_name("emulator") / "compile_times.py"), "MLP"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("|").split("|") for line in done.stdout.splitlines()[3:]]
    spent = [float(row[2].removesuffix(" s")) for row in rows]
    assert len(spent) == 4
    assert spent[3] < spent[2] / 2
