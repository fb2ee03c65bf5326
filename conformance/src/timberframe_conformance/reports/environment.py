"""What a run depends on besides device and suite: machine, versions, settings."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np

import timberframe_conformance
from timberframe_conformance.commit import commit_number
from timberframe_conformance.isolation.asking import unanswered
from timberframe_conformance.isolation.loading import excluded
from timberframe_core.errors import UnavailableError
from timberframe_core.failures import describe_failure
from timberframe_core.plugin import loader

PACKAGES = (
    "timberframe-core",
    "timberframe",
    "timberframe-sdk",
    "timberframe-conformance",
    "numpy",
    "scipy",
    "mpmath",
    "pytest",
    "pytest-xdist",
)
_VARIABLES = (
    "OPENBLAS_", "MKL_", "OMP_", "NVPL_", "ONEDNN_", "DNNL_", "XLA_", "JAX_", "TORCH_", "PYTORCH_", "ORT_",
    "NVIDIA_TF32_", "TIMBERFRAME_",
)  # fmt: skip
"""Prefixes of the variables that change how numerical libraries behave."""


def environment(modules: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the run's environment: machine, versions, and what changes how numerical libraries behave.

    modules: of Python, what the device computes with.
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": package_versions(modules),
        "plugins": plugin_versions(),
        **sources(),
        "variables": numerical_variables(),
        "subnormals": "kept" if np.float32(1e-40) * np.float32(1) else "flushed",  # libraries switch the process
        "plugins_left_out": plugins_left_out(),
        "unanswered": dict(unanswered()),
    }


def package_versions(modules: Sequence[str] = ()) -> dict[str, str]:
    """Returns the versions of the packages that the suite is made of, and of those that these modules are of."""
    found = packages_distributions() if modules else {}  # reads the files of all packages, which takes a while
    names = [*PACKAGES, *(name for module in modules for name in found.get(module.partition(".")[0], ()))]
    versions = {}
    for name in dict.fromkeys(names):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def sources() -> dict[str, Any]:
    """Returns what identifies the files that are run: asked before a run, since a tree may change during it."""
    return {"suite_hash": suite_hash(), "git": git_revision()}


def plugin_versions() -> Mapping[str, str]:
    """Distribution and version of each plugin that is in use."""
    found = {p.name: f"{p.distribution} {p.version}".strip() for p in loader.registry.plugins.values() if p.loaded}
    return dict(sorted(found.items()))


def suite_hash() -> str:
    """Returns what identifies the suite's own files: two runs with the same try the same."""
    root = Path(timberframe_conformance.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".json", ".toml")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def git_revision() -> str:
    """Returns the commit that is checked out in the current folder, with a plus if files
    differ from it; "" without git.
    """
    number = commit_number()
    if not number:
        return ""
    changed = subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False)
    return f"{number:040x}{'+' if changed.stdout else ''}"


def plugins_left_out() -> Mapping[str, str]:
    """Returns the installed plugins that cannot be used, each with the reason; not those whose hardware is absent."""
    failures = loader.registry.failures().items()
    found = {name: describe_failure(e) for name, e in failures if not isinstance(e, UnavailableError)}
    return {**found, **{name: f"it {reason}" for name, reason in excluded().items()}}


def numerical_variables() -> Mapping[str, str]:
    """Returns the variables set that change how numerical libraries behave."""
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(_VARIABLES)}


def processor() -> str:
    """Returns the processor's model name, if the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
