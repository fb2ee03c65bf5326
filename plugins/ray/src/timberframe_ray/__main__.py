"""``python -m timberframe_ray up|status|down``: a cluster of this machine that outlives the command."""

from __future__ import annotations

import argparse
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from timberframe_ray import engine
from timberframe_ray.cluster import OBJECT_STORE_BYTES, Cluster, end_workers, jobs_of
from timberframe_ray.target import read_address
from timberframe_sdk import InvalidArgumentError, OpError

_FOLDER = Path(tempfile.gettempdir()) / f"timberframe-ray-{os.getuid()}"
_NO_IDLE_PROCESSES = {"prestart_worker_first_driver": False}
"""A setting of Ray, which else starts a process for each CPU before anybody asks for one."""
_START_SECONDS = 60.0
_END_SECONDS = 60.0
"""Ray drains its nodes for up to 30 s."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out the command; its exit status."""
    given = _arguments().parse_args(arguments)
    try:
        found: int = given.run(given)
        return found
    except (RuntimeError, OpError, engine.LostError) as e:
        print(e, file=sys.stderr)
        return 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m timberframe_ray", description=__doc__)
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="starts Ray here, and a cluster's workers on it")
    up.add_argument("--ps", type=_count, default=0, help="tasks of job 'ps'")
    up.add_argument("--workers", type=_count, default=1, help="tasks of job 'worker'")
    up.add_argument("--name", default="local", help="the cluster's name: sessions are on ray:NAME")
    up.add_argument("--cpus", type=_count, help="for the processes of `fit`; all by default")
    up.add_argument("--dashboard", action="store_true", help="with Ray's dashboard")
    up.add_argument(
        "--object-store", type=_count, metavar="BYTES", help=f"shared memory; {OBJECT_STORE_BYTES} by default"
    )
    up.set_defaults(run=_up)
    commands.add_parser("status", help="says what runs").set_defaults(run=_status)
    commands.add_parser("down", help="ends the workers, and the Ray that `up` started").set_defaults(run=_down)
    for command in commands.choices.values():
        command.add_argument(
            "--folder", type=Path, default=_FOLDER, help="where Ray has sockets and logs: a short path"
        )
    return parser


def _count(text: str) -> int:
    """Returns a number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is given; a whole number of at least 0 is required")
    return int(text)


def _address(folder: Path) -> str | None:
    """Returns the address of the cluster that runs in a folder."""
    if _head(folder) is None:
        return None
    with suppress(FileNotFoundError):
        return (folder / "ray_current_cluster").read_text().strip()
    return None


def _check_private(folder: Path) -> None:
    """Raises InvalidArgumentError for a folder that another user owns or may write to.

    What is in it is trusted: `down` ends the process that it names, and values that arrive there are unpickled.
    """
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise InvalidArgumentError(
            f"{folder}: belongs to user {found.st_uid} and has mode {stat.filemode(found.st_mode)}; a folder of user "
            f"{os.getuid()} that nobody else can write to is required, which --folder can name"
        )


def _head(folder: Path) -> int | None:
    """Returns the process that `up` started and that runs."""
    _check_private(folder)
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        found = int((folder / "head.pid").read_text())
        os.kill(found, 0)
        return found
    return None


def _up(given: argparse.Namespace) -> int:
    read_address(given.name)  # so that sessions can name it
    folder: Path = given.folder
    if _head(folder) is None:
        _start(folder, given)
    elif given.cpus is not None or given.object_store is not None or given.dashboard:
        raise InvalidArgumentError(
            f"up: Ray runs in {folder}; --cpus, --object-store and --dashboard are for its start, after `down`"
        )
    engine.join(folder=str(given.folder))
    Cluster(given.name, jobs_of(given.ps, given.workers))
    _show()
    return 0


def _has_token() -> bool:
    """Returns whether a Ray that is started here asks for the user's token."""
    return os.environ.get("RAY_AUTH_MODE", "token") == "token"


def _start(folder: Path, given: argparse.Namespace) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(folder)  # another user may have made it meanwhile
    (folder / "ray_current_cluster").unlink(missing_ok=True)
    ray = str(Path(sys.executable).with_name("ray"))
    if _has_token():  # makes one where this user has none
        subprocess.run([ray, "get-auth-token", "--generate"], stdout=subprocess.DEVNULL, check=True)
    cpus = (os.cpu_count() or 1) if given.cpus is None else given.cpus
    memory = OBJECT_STORE_BYTES if given.object_store is None else given.object_store
    command = [
        ray, "start", "--head", "--block", "--port=0", f"--num-cpus={cpus}",
        f"--include-dashboard={given.dashboard}", f"--object-store-memory={memory}",
        f"--temp-dir={folder}", "--disable-usage-stats",
        f"--system-config={json.dumps({**engine.HEALTH, **_NO_IDLE_PROCESSES})}",
    ]  # fmt: skip
    with (folder / "head.log").open("wb") as log:
        head = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    (folder / "head.pid").write_text(str(head.pid))
    print("starting Ray ...", flush=True)
    end = time.monotonic() + _START_SECONDS
    while _address(folder) is None:
        if head.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"Ray did not start:\n{(folder / 'head.log').read_text()}")
        time.sleep(0.1)


def _status(given: argparse.Namespace) -> int:
    if _address(given.folder) is None:
        print("no cluster runs here; `python -m timberframe_ray up` starts one")
        return 1
    engine.join(folder=str(given.folder))
    _show()
    return 0


def _show() -> None:
    print(f"Ray at {engine.gcs_address()}{engine.dashboard()}")
    token = " with RAY_AUTH_MODE=token" if _has_token() else ""
    for name in engine.clusters():
        print(f"ray:{name}, where several Rays run ray:{name}@{engine.gcs_address()}{token}")
        for job, task in engine.tasks_of(name):
            found = engine.describe(engine.find_worker(name, job, task))
            print(
                f"  /job:{job}/replica:0/task:{task}  process {found['process']}  incarnation "
                f"{found['incarnation']}  sessions {found['sessions']}"
            )


def _down(given: argparse.Namespace) -> int:
    folder: Path = given.folder
    head = _head(folder)
    if head is None or _address(folder) is None:
        print("no cluster runs here")
        return 0
    engine.join(folder=str(given.folder))
    for name in engine.clusters():
        end_workers(name)
    engine.leave()
    os.kill(head, signal.SIGTERM)  # `ray start --block` ends the processes that it has started
    end = time.monotonic() + _END_SECONDS
    while _head(folder) is not None and time.monotonic() < end:
        with suppress(ChildProcessError):
            os.waitpid(head, os.WNOHANG)
        time.sleep(0.1)
    if _head(folder) is not None:
        raise RuntimeError(f"the workers have ended; Ray, process {head}, has not in {_END_SECONDS:g} s")
    (folder / "head.pid").unlink(missing_ok=True)
    print("the workers and Ray have ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
