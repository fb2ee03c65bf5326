"""Plugins that are broken in some way: the others work, and the reason is shown where it matters."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import timberframe_core
from timberframe_core import errors
from timberframe_core.plugin.contracts import KernelDef, KernelNode
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_core.plugin.loader import SELECTION_VARIABLE


def install(folder: Path, name: str, source: str, requires: str = "timberframe-sdk>=0.1") -> None:
    """A fake installed package with its own .dist-info, whose plugin is this source."""
    (folder / f"{name}.py").write_text(textwrap.dedent(source))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n")
    (info / "entry_points.txt").write_text(f"[timberframe]\n{name} = {name}\n")


def python(folder: Path, program: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if SELECTION_VARIABLE in environment:
        names = [path.stem for path in folder.glob("*.py")]
        environment[SELECTION_VARIABLE] = ",".join([environment[SELECTION_VARIABLE], *names])
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n" + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=seconds, check=False, env=environment,
    )  # fmt: skip


ADD = """
    import timberframe as tf
    with tf.Session() as session:
        print(session.run(tf.constant(1.0) + 2.0))
"""
SHOW = "import sys; from timberframe.__main__ import main; sys.exit(main(['devices']))"


@pytest.mark.slow
def test_a_plugin_that_raises_at_import_disturbs_nobody(tmp_path: Path) -> None:
    install(tmp_path, "broken", "raise OSError('libacme.so: cannot open shared object file')")
    assert python(tmp_path, ADD).stdout.strip() == "3.0"
    shown = python(tmp_path, SHOW)
    assert "plugin broken failed: OSError: libacme.so: cannot open shared object file" in shown.stdout
    assert shown.returncode == 1


def test_importing_timberframe_loads_no_plugin(tmp_path: Path) -> None:
    install(tmp_path, "loud", "print('loaded')")
    done = python(tmp_path, "import timberframe as tf; tf.constant(1.0); print('built')")
    assert done.stdout.strip() == "built"


@pytest.mark.slow
def test_a_plugin_for_another_sdk_is_not_imported(tmp_path: Path) -> None:
    install(tmp_path, "future", "print('loaded')", requires="timberframe-sdk>=99")
    shown = python(tmp_path, SHOW)
    assert "loaded" not in shown.stdout
    assert f"future 1.0 needs timberframe-sdk>=99; installed is {timberframe_core.__version__}" in shown.stdout


THIEF = """
    from timberframe_sdk import KernelDef, hookimpl

    def build(node):
        raise AssertionError

    @hookimpl
    def timberframe_devices(config):
        return []

    @hookimpl
    def timberframe_kernels():
        return [KernelDef("Thief>Fresh", "CPU", build), KernelDef("AddV2", "CPU", build)]
"""


@pytest.mark.slow
@pytest.mark.cpu
def test_a_plugin_that_claims_a_kernel_of_another_is_refused_completely(tmp_path: Path) -> None:
    install(tmp_path, "a_thief", THIEF)
    assert python(tmp_path, ADD).stdout.strip() == "3.0"
    shown = python(tmp_path, SHOW)
    assert "plugin a_thief failed: AlreadyExistsError: kernel AddV2 on CPU: claimed by" in shown.stdout
    assert "a_thief.build" in shown.stdout
    listed = python(tmp_path, "from timberframe.__main__ import main; main(['kernels', 'Thief>Fresh'])")
    assert "no kernels match" in listed.stderr


@pytest.mark.slow
def test_a_plugin_with_a_misspelt_hook_is_refused(tmp_path: Path) -> None:
    source = """
        from timberframe_sdk import hookimpl

        @hookimpl
        def timberframe_devicez(config):
            return []
    """
    install(tmp_path, "misspelt", source)
    shown = python(tmp_path, SHOW)
    assert "plugin misspelt failed" in shown.stdout
    assert "timberframe_devicez" in shown.stdout


@pytest.mark.slow
def test_a_function_without_the_hook_mark_is_refused(tmp_path: Path) -> None:
    install(tmp_path, "unmarked", "def timberframe_kernels():\n    return []\n")
    shown = python(tmp_path, SHOW)
    assert "plugin unmarked failed" in shown.stdout
    assert "timberframe_kernels: is not marked as a hook; put @hookimpl before it" in shown.stdout


def test_a_kernel_for_an_op_that_nobody_defines_is_refused() -> None:
    with pytest.raises(LookupError, match=r"op MatMull: not registered; nearest names: .*MatMul"):
        KernelRegistry().register([KernelDef("MatMull", "CPU", lambda node: print)])


@pytest.mark.slow
def test_environment_selects_plugins(tmp_path: Path) -> None:
    install(tmp_path, "broken", "raise OSError('no')")
    program = "import os; os.environ['TIMBERFRAME_PLUGINS'] = '-broken'\n" + SHOW
    shown = python(tmp_path, program)
    assert "broken" not in shown.stdout
    assert shown.returncode == 0


ABSENT = """
    from timberframe_core.errors import UnavailableError
    from timberframe_core.plugin.hooks import hookimpl

    @hookimpl
    def timberframe_devices(config):
        raise UnavailableError("no ACME is plugged in; plug one in")
"""


def doctor(folder: Path) -> subprocess.CompletedProcess[str]:
    """Examines the plugins of a folder, and those that are installed, in some twenty processes."""
    program = f"""
        import os, sys
        os.environ["PYTHONPATH"] = os.pathsep.join([{str(folder)!r}, os.environ.get("PYTHONPATH", "")])
        from timberframe.__main__ import main
        sys.exit(main(["doctor"]))
    """
    return python(folder, program, seconds=240)


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The examination of plugins that disturb nobody."""
    folder = tmp_path_factory.mktemp("harmless")
    install(folder, "absent", ABSENT)
    install(folder, "acme", "")
    install(folder, "checked", "timberframe_contract = (2, 0)")
    return doctor(folder)


@pytest.fixture(scope="module")
def harmful(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The examination of a plugin that crashes, and one that takes a kernel of another."""
    folder = tmp_path_factory.mktemp("harmful")
    install(folder, "crashing", "import os; os.kill(os.getpid(), 11)")
    install(folder, "a_thief", THIEF)
    return doctor(folder)


@pytest.mark.slow
def test_doctor_survives_a_plugin_that_crashes(harmful: subprocess.CompletedProcess[str]) -> None:
    assert "crashing (crashing 1.0): crashes: the process died of signal 11" in harmful.stdout
    assert ": works" in harmful.stdout


@pytest.mark.slow
def test_doctor_finds_nothing_wrong_with_a_plugin_whose_hardware_is_missing(
    harmless: subprocess.CompletedProcess[str],
) -> None:
    assert "absent (absent 1.0): has no device: no ACME is plugged in; plug one in" in harmless.stdout
    assert harmless.returncode == 0


CONTRACT_WORDS = "names no version of the contract, so that it is not checked whether it fits this timberframe-sdk"


@pytest.mark.slow
def test_doctor_says_of_a_plugin_that_it_names_no_contract(harmless: subprocess.CompletedProcess[str]) -> None:
    assert f"acme (acme 1.0): works; it {CONTRACT_WORDS}; timberframe_contract = (2, " in harmless.stdout
    assert "checked (checked 1.0): works\n" in harmless.stdout
    assert harmless.returncode == 0


@pytest.mark.slow
def test_the_list_of_devices_says_of_a_plugin_that_it_names_no_contract(tmp_path: Path) -> None:
    install(tmp_path, "acme", "")
    install(tmp_path, "checked", "timberframe_contract = (2, 0)")
    shown = python(tmp_path, SHOW)
    assert f"plugin acme {CONTRACT_WORDS}; timberframe_contract = (2, " in shown.stdout
    assert "plugin checked" not in shown.stdout
    assert shown.returncode == 0


@pytest.mark.slow
@pytest.mark.cpu
def test_doctor_reports_a_plugin_that_works_only_alone(harmful: subprocess.CompletedProcess[str]) -> None:
    assert "a_thief (a_thief 1.0): fails: AlreadyExistsError: kernel AddV2 on CPU: claimed by" in harmful.stdout
    assert harmful.returncode == 1


def test_equal_claims_within_one_registration_register_nothing() -> None:
    registry = KernelRegistry()
    first = KernelDef("Neg", "ACME", lambda node: None, {"T": ("float32", "int32")})
    second = KernelDef("Neg", "ACME", lambda node: None, {"T": ("int32",)})
    with pytest.raises(errors.AlreadyExistsError, match=r"needs a higher priority or a label"):
        registry.register([first, second])
    assert registry.kernels() == []


def test_a_higher_priority_replaces_a_kernel() -> None:
    registry = KernelRegistry()
    slow = KernelDef("Neg", "ACME", lambda node: "slow")
    fast = KernelDef("Neg", "ACME", lambda node: "fast", priority=1)
    registry.register([slow, fast])
    acme: Any = SimpleNamespace(type="ACME")
    assert registry.find(KernelNode("Neg", "it", {}, [], [], acme)) is fast
