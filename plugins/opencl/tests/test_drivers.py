"""Drivers are loaded when one of their devices is first used, where only processors are known to be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import timberframe as tf
from timberframe_opencl.drivers import Drivers, Report
from timberframe_sdk import UnavailableError

_PROGRAM = """
import sys
import timberframe as tf
from timberframe_opencl.drivers import drivers

found = []
with tf.Session() as session:
    spec = [d.spec for d in session.list_devices() if d.type == "OPENCL"]
    y = tf.placeholder(tf.float32, [3]) * 2.0
    session.run(y, {y.op.inputs[0]: [1, 2, 3]})
    found += [bool(spec), drivers._devices is not None]
    if spec and sys.argv[1] == "use":
        with tf.device(spec[0]):
            z = tf.placeholder(tf.float32, [3]) * 2.0
        found += [session.run(z, {z.op.inputs[0]: [1, 2, 3]}).tolist(), drivers._devices is not None]
print(found)
"""


def run_program(cache: Path, what: str, **environment: str) -> str:
    """Returns what a process prints whose caches are in this folder."""
    variables = {**os.environ, "TIMBERFRAME_CACHE": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, what], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture
def processors() -> None:
    """Skips the test where there is no device, or one that is no processor."""
    with tf.Graph().as_default(), tf.Session() as session:
        found = [d for d in session.list_devices() if d.type == "OPENCL"]
        if not found or not all(d.is_cpu for d in found):
            pytest.skip("no OpenCL driver for the processor alone is installed")


@pytest.mark.slow
@pytest.mark.usefixtures("processors")
def test_a_driver_is_loaded_when_its_device_is_first_used(tmp_path: Path) -> None:
    assert run_program(tmp_path, "leave") == "[True, True]"  # nothing is known yet
    assert run_program(tmp_path, "leave") == "[True, False]"
    assert run_program(tmp_path, "use") == "[True, False, [2.0, 4.0, 6.0], True]"


@pytest.mark.slow
@pytest.mark.usefixtures("processors")
def test_what_is_remembered_holds_for_the_same_settings_alone(tmp_path: Path) -> None:
    run_program(tmp_path, "leave")
    (file,) = (tmp_path / "opencl" / "devices").glob("*.json")
    assert run_program(tmp_path, "leave", CL_OTHER="1") == "[True, True]"
    for damaged in ("", "{", "[]", json.dumps([{"vendor": "x"}])):
        file.write_text(damaged)
        assert run_program(tmp_path, "leave") == "[True, True]", damaged
    assert json.loads(file.read_text())[0]["is_cpu"]


@pytest.mark.usefixtures("processors")
def test_a_device_that_was_replaced_is_refused() -> None:
    drivers = Drivers()
    report = Report.of(drivers.devices()[0])
    other = Report(**{**vars(report), "model": "another processor"})
    assert drivers.device(0, report) is drivers.devices()[0]
    with pytest.raises(UnavailableError, match=r"another processor; start the program again"):
        drivers.device(0, other)
    with pytest.raises(UnavailableError, match=r"reports None, where it had reported"):
        drivers.device(len(drivers.devices()), report)


@pytest.mark.parametrize("given", ["memory", "compute_units"])
def test_a_device_that_is_given_more_is_no_other(given: str) -> None:
    drivers = Drivers()
    try:
        found = drivers.devices()
    except UnavailableError:
        pytest.skip("no OpenCL driver is installed")
    report = Report.of(found[0])
    grown = Report(**{**vars(report), given: getattr(report, given) + 1})
    assert drivers.device(0, grown) is found[0]
