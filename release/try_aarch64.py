"""Tries the wheel for 64-bit Arm on another machine: Debian's Python for Arm, emulated by qemu-user.

``python release/try_aarch64.py`` needs Debian, qemu-user and dist/. The README's first program must give what the
README says, and the CPU must reach level core. Nothing is installed outside a temporary folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from environments import DIST, WORKSPACE, run
from try_wheels import USERS, first_program

ARCHITECTURE, DEBIAN = "aarch64", "arm64"
PROCESSOR = "cortex-a72"
"""A plain one: on qemu 7.2's `max`, OpenBLAS 0.3.34 takes its kernels for SME, and its own sgemm is wrong there."""


def fetch(folder: Path) -> Path:
    """Unpacks Debian's Python for Arm, with all that it needs, into a folder."""
    root, state = folder / "root", folder / "apt"
    for part in ("state/lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True)
    (state / "status").touch()
    apt = [
        "apt-get", "-q", "-o", f"APT::Architecture={DEBIAN}", "-o", f"APT::Architectures={DEBIAN}",
        "-o", f"Dir::State={state / 'state'}", "-o", f"Dir::State::status={state / 'status'}",
        "-o", f"Dir::Cache={state / 'cache'}", "-o", "APT::Install-Recommends=false", "-o", "Debug::NoLocking=true",
        "-o", "APT::Sandbox::User=root",
    ]  # fmt: skip
    run([*apt, "update"])
    run([*apt, "install", "--yes", "--download-only", "python3", "zlib1g", "libc6", "libstdc++6"])
    for package in sorted((state / "cache" / "archives").glob("*.deb")):
        run(["dpkg-deb", "-x", package, root])
    return root


def emulated(root: Path, folder: Path) -> Path:
    """Returns a command that runs that Python, and of which its own child processes make the same."""
    python = next(p for p in sorted((root / "usr/bin").glob("python3.*")) if p.name.split(".")[-1].isdecimal())
    command = folder / "python"
    command.write_text(
        f'#!/bin/sh\nexec qemu-{ARCHITECTURE} -cpu {PROCESSOR} -L "{root}" -0 "{command}" "{python}" "$@"\n'
    )
    command.chmod(0o755)
    return command


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        root = fetch(folder)
        python = emulated(root, folder)
        site = folder / "site"
        settings = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site), "PYTHONHOME": f"{root}/usr", "HOME": str(folder)}
        settings["TIMBERFRAME_CACHE"] = str(folder / "cache")
        version = run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], settings).strip()
        platforms = [f"--platform=manylinux_2_{minor}_{ARCHITECTURE}" for minor in (17, 26, 27, 28)]
        run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--target",
                site,
                "--only-binary=:all:",
                *platforms,
                "--python-version",
                version,
                "--find-links",
                DIST,
                "-c",
                WORKSPACE / "constraints.txt",
                *USERS,
            ]
        )
        program, expected = first_program()
        printed = run([python, "-c", program], settings, folder)
        assert printed == expected, f"the first program prints {printed!r}; the README says {expected!r}"
        conform = "import sys, timberframe_conformance.cli as c; sys.exit(c.main(sys.argv[1:]))"
        arguments = ["run", "--device=cpu", "--require", "core", "--jobs", "1", "--timeout", "900"]
        print(run([python, "-c", conform, *arguments], settings, folder).splitlines()[-1])
        print(f"the wheel for {ARCHITECTURE} works, with Python {version} under qemu")


if __name__ == "__main__":
    main()
