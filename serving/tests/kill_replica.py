"""Kills a replica of Ray Serve under load: ``python kill_replica.py [--clients N] [--seconds S]``.

Only requests that are in it may fail, each must be answered when it is asked again, and within ten seconds as many
requests a second must be answered as before. Needs `ray[serve]`, and Linux. Part of `make full`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from figures import free_port, row, save
from load import HttpConnection

PREDICT = "/v1/models/m:predict"
BACK_SECONDS, WINDOW = 10.0, 0.5
SHARE, STRETCH = 0.8, 4
"""The part of the rate from before, and for how many windows: by less, rates differ at any time."""


def replicas_of(ancestor: int) -> list[int]:
    """Returns the processes of replicas that a process has started, through whatever others."""
    parents, found = {}, []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if (folder / "cmdline").read_bytes().startswith(b"ray::ServeReplica"):
                    found.append(int(folder.name))
            except OSError:
                continue  # it has just ended

    def is_below(number: int) -> bool:
        while number > 1 and number != ancestor:
            number = parents.get(number, 0)
        return number == ancestor

    return [number for number in found if is_below(number)]


class Load:
    """Clients that ask again and again, and ask once more what failed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.good: list[float] = []
        self.failed: list[tuple[float, str]] = []
        self.lost = 0
        self.stop = False

    async def client(self) -> None:
        """Asks until `stop`."""
        connection = await HttpConnection.open(self._port, PREDICT, row(64))
        again = 0
        while not self.stop:
            status = await connection.ask()
            if status == "200":
                self.good.append(time.monotonic())
                again = 0
                continue
            self.failed.append((time.monotonic(), status))
            again += 1
            self.lost += again == 2
            # Ray Serve closes a connection after an error of its own.
            connection.close()
            connection = await HttpConnection.open(self._port, PREDICT, row(64))

    def rates(self, begin: float, seconds: float) -> list[float]:
        """Returns the good answers a second in windows from a moment on."""
        edges = np.arange(begin, begin + seconds + WINDOW / 2, WINDOW)
        return [float(n) / WINDOW for n in np.histogram(self.good, edges)[0]]


async def run(port: int, server: int, clients: int, seconds: float) -> list[str]:
    """Loads a server, kills a replica, and returns what is not as it should be."""
    load = Load(port)
    begin = time.monotonic()
    asking = [asyncio.ensure_future(load.client()) for _ in range(clients)]
    await asyncio.sleep(seconds)
    victims = replicas_of(server)
    killed = time.monotonic()
    os.kill(victims[0], signal.SIGKILL)
    await asyncio.sleep(BACK_SECONDS + 5)
    load.stop = True
    await asyncio.wait(asking, timeout=60)
    before = float(np.median(load.rates(begin + 1, killed - begin - 1)))
    after = load.rates(killed, BACK_SECONDS + 5)
    stretches = np.convolve(after, np.ones(STRETCH) / STRETCH, "valid")
    back = next((i * WINDOW for i, rate in enumerate(stretches) if rate >= SHARE * before), None)
    now = replicas_of(server)
    early = [status for at, status in load.failed if at < killed]
    print(f"{clients} clients, {len(victims)} replicas, {len(load.good)} answers: {before:.0f}/s before one is killed")
    print(f"failed: {len(load.failed)} ({sorted({s for _, s in load.failed})}), again when asked again: {load.lost}")
    print(f"then, each {WINDOW} s: {[round(rate) for rate in after]}")
    print(f"{SHARE:.0%} of the rate before for {STRETCH * WINDOW} s from {back} s on")
    print(f"replicas at the end: {len(now)}")
    wrong = []
    if early:
        wrong.append(f"{len(early)} requests failed before anything was killed: {sorted(set(early))}")
    if len(load.failed) > clients or load.lost:
        wrong.append("more failed than the requests that were being answered, or failed twice")
    if back is None or back + STRETCH * WINDOW > BACK_SECONDS:
        wrong.append(f"the rate is not back within {BACK_SECONDS} s")
    if victims[0] in now or len(now) != len(victims):
        wrong.append(f"{len(now)} replicas run at the end; {len(victims)} others are required")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8, help="of load before the kill")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tf-ray-") as folder:
        save(Path(folder) / "m" / "1", (64, 96, 48, 10))
        port = free_port()
        flags = [f"--model_base_path={folder}/m", "--model_name=m", "--host=127.0.0.1", f"--rest_api_port={port}"]
        command = [sys.executable, "-m", "timberframe_serving", *flags, "--ray=2"]
        environment = {**os.environ, "RAY_TMPDIR": folder, "RAY_ADDRESS": "local"}
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
            try:
                wait_until_ready(server, port)
                wrong = asyncio.run(run(port, server.pid, given.clients, given.seconds))
            finally:
                server.terminate()
    if wrong:
        raise SystemExit("\n".join(wrong))


def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Returns when two replicas run and are ready; raises SystemExit where they are not within three minutes."""
    end = time.monotonic() + 180
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            if len(replicas_of(server.pid)) == 2:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"the server did not start; it ended with {server.poll()}")


if __name__ == "__main__":
    main()
