"""Tries the wheels of dist/ as people use them: ``python release/try_wheels.py [--python python3.12]...``.

For each Python, each time in an empty environment, without a package index and without a compiler on PATH: a user, a
vendor where timberframe-cpu has no wheel, the SDK alone, plugins for older versions of the contract. Then, with the
first Python, each kind of package that `timberframe-sdk new` writes: it is written, installed and reaches level core,
within LIMIT seconds of machine time.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from environments import WORKSPACE, Environment, run

PYTHONS = tuple(f"python3.{minor}" for minor in range(11, 15))
DRIVER = ("intel-opencl-rt", "intel-cmplr-lib-rt")
KINDS = {
    "python": (),
    "c": ("setuptools>=77", "cffi"),
    "opencl": ("pyopencl", *DRIVER),
    "npu": (),
    "compiler": (),
}
"""What each kind needs beside the SDK, to be built or to run."""
BUILD = ("hatchling",)
USERS = ("timberframe", "timberframe-conformance")
LIMIT = 120.0


def program(readme: str, heading: str) -> tuple[str, str]:
    """Returns the first program under a heading of a README, and what it prints."""
    text = (WORKSPACE / readme).read_text()
    found = re.search(rf"^## {heading}\n.*?```python\n(.*?)```\s*```\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{readme} has no program under '{heading}'"
    return found[1], found[2]


def first_program() -> tuple[str, str]:
    """Returns the README's first program, and what it prints."""
    return program("README.md", "First program")


def try_user(environment: Environment) -> None:
    """Tries a user's installation: the README's first program, types, and level core on the CPU."""
    environment.install("timberframe")
    found = environment.run(
        "python", "-c", "import shutil; print(*filter(None, map(shutil.which, ('cc', 'gcc', 'clang'))))"
    )
    assert not found.strip(), f"a compiler is on PATH: {found}"
    text, expected = first_program()
    (environment.folder / "first.py").write_text(text)
    printed = environment.run("python", "first.py")
    assert printed == expected, f"the first program prints {printed!r}; the README says {expected!r}"
    typed = WORKSPACE / "core/tests/typed/program.py"
    check: list[str | Path] = ["--strict", "--config-file=", "--cache-dir", environment.folder / "mypy", typed]
    run([sys.executable, "-m", "mypy", "--python-executable", environment.bin / "python", *check])
    environment.install("timberframe-conformance")
    print(environment.run("conformance", "run", "--device=cpu", "--require", "core").splitlines()[-1])


def try_vendor_without_cpu(environment: Environment) -> None:
    """Tries the packages of a vendor where timberframe-cpu has no wheel, as it is where the marker of
    `timberframe` leaves it out.
    """
    environment.install("timberframe-sdk", "timberframe-conformance")
    environment.run("pip", "uninstall", "--quiet", "--yes", "timberframe-cpu", "cffi", "pycparser")
    text, expected = first_program()
    (environment.folder / "first.py").write_text(text)
    printed = environment.run("python", "first.py")
    assert "install timberframe-cpu for a fast one" in printed
    value = float(printed.splitlines()[-1].strip("[]"))
    assert abs(value - float(expected.strip().strip("[]"))) < 1e-6, printed
    verdict = environment.run("conformance", "run", "--device=cpu", "--level", "core").splitlines()[-1]
    print(f"the reference in place of timberframe-cpu: {verdict}")
    try_kind(environment, "python")


def try_sdk_alone(environment: Environment) -> None:
    """Tries the SDK, without front end, suite and plugin: the program of the core's README."""
    environment.install("timberframe-sdk")
    text, expected = program("core/README.md", "Alone")
    (environment.folder / "alone.py").write_text(text)
    printed = environment.run("python", "alone.py")
    assert printed.endswith(expected), f"the program prints {printed!r}; core/README.md says {expected!r}"


def try_old_plugins(environment: Environment) -> None:
    """Plugins of an earlier release: one serves; one for a contract that is gone is left out, with both versions."""
    environment.install(*USERS)
    environment.download(*BUILD)
    for name, contract in (("acmeearlier", "(2, 0)"), ("acmeold", "(1, 9)")):
        environment.run("timberframe-sdk", "new", name)
        (module,) = (environment.folder / name).glob("src/*/device.py")
        text, count = re.subn(
            r"^timberframe_contract = .*$", f"timberframe_contract = {contract}", module.read_text(), flags=re.M
        )
        assert count == 1, f"{module} names no contract"
        module.write_text(text)
        package = environment.folder / name / "pyproject.toml"
        package.write_text(re.sub(r"timberframe-sdk>=[^\",]+", "timberframe-sdk>=0.1", package.read_text()))
        environment.run("pip", "install", "--quiet", f"./{name}")
    shown = environment.run("python", "-m", "timberframe", "doctor", status=1)
    wanted = ("acmeearlier (timberframe-acmeearlier 0.1.0): works", "written for version 1.9 of the contract")
    assert all(w in shown for w in wanted), shown
    environment.run("conformance", "run", "--device=acmeearlier", "--level", "core")
    print("\n".join(line for line in shown.splitlines() if line.startswith("acme")))


def try_kind(environment: Environment, kind: str) -> None:
    """From nothing to a device that reaches level core."""
    name = f"acme{kind}"
    environment.download(*BUILD, *KINDS[kind], "cffi", "pytest")
    before = machine_time()
    if kind == "opencl":
        environment.run("pip", "install", "--quiet", *DRIVER)
    environment.run("timberframe-sdk", "new", name, "--kind", kind)
    environment.run("pip", "install", "--quiet", f"./{name}", compiler=kind == "c")
    command = ("conformance", "run", f"--device={name}", "--profile", f"{name}/profile.toml", "--require", "core")
    verdict = environment.run(*command).splitlines()[-1]
    used = machine_time() - before
    print(f"{kind}: {verdict}; {used:.0f} s of machine time from `timberframe-sdk new` on", flush=True)
    assert used < LIMIT, f"kind {kind}: {used:.0f} s of machine time; at most {LIMIT:.0f} are allowed"


def try_kinds(environment: Environment, kinds: list[str]) -> None:
    """Tries all kinds of package that `timberframe-sdk new` writes."""
    environment.install(*USERS)
    for kind in kinds:
        try_kind(environment, kind)


def machine_time() -> float:
    """Returns seconds that processors spent on this process's ended children."""
    spent = os.times()
    return spent.children_user + spent.children_system


def works(python: str) -> bool:
    """Returns whether there is such an interpreter, with venv."""
    found = shutil.which(python)
    return (
        found is not None
        and not subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
    )


TRIALS: dict[str, Callable[[Environment], None]] = {
    "user": try_user,
    "vendor-without-cpu": try_vendor_without_cpu,
    "sdk-alone": try_sdk_alone,
    "old-plugins": try_old_plugins,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Tries the wheels of dist/ as people use them.")
    parser.add_argument("--python", action="append", help="default: each of " + ", ".join(PYTHONS) + " that is there")
    parser.add_argument("--trial", action="append", choices=[*TRIALS, "kinds"], help="default: all")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="default: all that can run here")
    given = parser.parse_args()
    pythons = given.python or [p for p in PYTHONS if works(p)] or [sys.executable]
    kinds = given.kind or [k for k in KINDS if k != "opencl" or platform.machine() == "x86_64"]
    trials: dict[str, Callable[[Environment], None]] = {**TRIALS, "kinds": lambda e: try_kinds(e, kinds)}
    for number, python in enumerate(pythons):
        for name in given.trial or trials:
            if name == "kinds" and number:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                environment = Environment(python, Path(scratch))
                print(f"== {name}, {environment.run('python', '--version').strip()}", flush=True)
                trials[name](environment)
    print(f"the wheels work, with {', '.join(pythons)}")


if __name__ == "__main__":
    main()
