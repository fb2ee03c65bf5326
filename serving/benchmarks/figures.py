"""The README's figures: ``python figures.py echo|batching|swap|overload [--seconds S] [--rounds R]``.

Servers run on one core and the load on another, where there are two and taskset is installed. What is compared takes
turns, round by round.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import uvloop
from load import Ask, HttpConnection, Result, closed, grpc_ask, milliseconds, opened

import timberframe as tf
from timberframe_serving.messages import inference

HERE = Path(__file__).parent
PIN = ["taskset", "-c", "0"] if shutil.which("taskset") and (os.cpu_count() or 1) > 1 else []
PREDICT = "/v1/models/m:predict"


def save(folder: Path, sizes: tuple[int, ...], seed: int = 0) -> None:
    """Saves a network of dense layers of these sizes."""
    random = np.random.default_rng(seed)
    with tf.Graph().as_default(), tf.Session() as session:
        layer = x = tf.placeholder(tf.float32, [None, sizes[0]], name="x")
        for i, (before, after) in enumerate(itertools.pairwise(sizes)):
            start = random.normal(scale=before**-0.5, size=(before, after)).astype(np.float32)
            layer = tf.nn.relu(tf.matmul(layer, tf.get_variable(f"w{i}", initializer=start)))
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(folder), {"x": x}, {"y": layer})


def free_port() -> int:
    """Returns a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def process(*command: str, port: int) -> Iterator[int]:
    """Runs a server until the block ends; yields the number of its process."""
    with subprocess.Popen([*PIN, sys.executable, *command], stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + 120
            while time.monotonic() < end:
                try:
                    with socket.create_connection(("127.0.0.1", port), 1):
                        break
                except OSError:
                    time.sleep(0.1)
            yield server.pid
        finally:
            server.terminate()


@contextmanager
def served(base: Path, *flags: str) -> Iterator[tuple[int, int, int]]:
    """Serves a model; yields the ports of HTTP and gRPC, and the number of the process."""
    http, rpc = free_port(), free_port()
    given = [f"--model_base_path={base}", "--model_name=m", "--host=127.0.0.1", "--log_level=error", *flags]
    with process("-m", "timberframe_serving", f"--rest_api_port={http}", f"--port={rpc}", *given, port=http) as number:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{http}/readyz")
                break
            except OSError:
                time.sleep(0.1)
        yield http, rpc, number


def held(number: int) -> tuple[int, int, int]:
    """Returns the memory in MB, threads and open files of a process, as Linux has them."""
    folder = Path(f"/proc/{number}")
    facts = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return int(facts["VmRSS"].split()[0]) // 1000, int(facts["Threads"]), len(list((folder / "fd").iterdir()))


async def clients(port: int, path: str, body: bytes, count: int) -> list[Ask]:
    """Returns connected clients of HTTP."""
    return [(await HttpConnection.open(port, path, body)).ask for _ in range(count)]


def row(width: int) -> bytes:
    """Returns a request of one row."""
    return json.dumps({"instances": [[round(i / width, 3) for i in range(width)]]}).encode()


def ratio(name: str, ours: list[float], theirs: list[float]) -> None:
    """Prints the middle ratio of pairs, and its range."""
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"{name}: {np.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f} over {len(ratios)} pairs)")


async def echo(folder: Path, seconds: float, rounds: int) -> None:
    """Compares requests a second with those of bare servers, of the network of the digits."""
    save(folder / "1", (64, 96, 48, 10))
    bare_http, bare_rpc = free_port(), free_port()
    body = row(64)
    asked = inference("ModelInferRequest")(model_name="m")
    asked.inputs.add(name="x", datatype="FP32", shape=[1, 64])
    asked.raw_input_contents.append(np.zeros((1, 64), np.float32).tobytes())
    with ExitStack() as stack:
        stack.enter_context(process(str(HERE / "echo.py"), "http", str(bare_http), port=bare_http))
        stack.enter_context(process(str(HERE / "echo.py"), "grpc", str(bare_rpc), port=bare_rpc))
        http, rpc, _ = stack.enter_context(served(folder))
        channels = [grpc.aio.insecure_channel(f"127.0.0.1:{p}") for p in (rpc, bare_rpc)]
        methods = ["/inference.GRPCInferenceService/ModelInfer", "/echo.Echo/Echo"]
        data = asked.SerializeToString()
        pairs = {
            "REST JSON": (await clients(http, PREDICT, body, 16), await clients(bare_http, "/echo", body, 16)),
            "gRPC, raw contents": tuple([grpc_ask(c, m, data)] * 16 for c, m in zip(channels, methods, strict=True)),
        }
        for name, (ours, theirs) in pairs.items():
            found: list[list[Result]] = [[], []]
            for _ in range(rounds):
                for i, asks in enumerate((ours, theirs)):
                    found[i].append(await closed(list(asks), seconds))
            for who, results in zip(("served", "echo"), found, strict=True):
                print(f"{name}, {who}: {results[-1]}")
            ratio(f"{name}, requests a second beside the echo", *([r.rate for r in f] for f in found))
            half = np.median([r.rate for r in found[0]]) / 2
            print(f"{name} at half of that rate: {await opened(list(ours), half, seconds)}")


async def batching(folder: Path, seconds: float, rounds: int) -> None:
    """Compares a model of some milliseconds with and without batches."""
    save(folder / "1", (64, *[512] * 40))
    body = row(64)
    with served(folder) as (http, *_), served(folder, "--enable_batching=false") as (plain, *_):
        for count in (1, 64):
            found: list[list[Result]] = [[], []]
            for _ in range(rounds):
                for i, port in enumerate((http, plain)):
                    found[i].append(await closed(await clients(port, PREDICT, body, count), seconds))
            print(f"{count} clients, batches: {found[0][-1]}")
            print(f"{count} clients, each request alone: {found[1][-1]}")
            ratio(f"{count} clients, requests a second", *([r.rate for r in f] for f in found))
            ratio(f"{count} clients, p50", *([float(np.median(r.good)) for r in f] for f in found))


async def swap(folder: Path, seconds: float, rounds: int) -> None:
    """Counts what fails while new versions take over, and what the server holds then."""
    save(folder / "m" / "1", (64, 96, 48, 10))
    with served(folder / "m") as (http, _, number):
        asks = await clients(http, PREDICT, row(64), 4)
        steady = await closed(asks, seconds)
        print(f"steady: {steady}")

        found = [held(number)]

        async def change() -> None:
            for version in range(2, 2 + rounds):
                await asyncio.to_thread(save, folder / "new", (64, 96, 48, 10), version)
                (folder / "new").rename(folder / "m" / str(version))
                await asyncio.sleep(seconds * 0.9)
                found.append(held(number))

        changing = asyncio.ensure_future(change())
        during = await closed(asks, seconds * rounds)
        await changing
        print(f"with {rounds} swaps: {during}")
        print(f"failed: {len(during.refused)} of {len(during.good) + len(during.refused)}")
        for what, values in zip(("MB", "threads", "open files"), zip(*found, strict=True), strict=True):
            print(f"{what}: {values[0]} before, {min(values)} to {max(values)} while versions change")


async def overload(folder: Path, seconds: float, rounds: int) -> None:
    """Asks for three times what the server can answer."""
    save(folder / "1", (64, *[512] * 40))
    file = folder.parent / "batching"
    file.write_text("max_batch_size { value: 16 } max_enqueued_batches { value: 2 }")
    with served(folder, f"--batching_parameters_file={file}") as (http, *_):
        peak = await closed(await clients(http, PREDICT, row(64), 48), seconds)
        print(f"peak: {peak}")
        asks = await clients(http, PREDICT, row(64), 1000)
        over = await opened(asks, 3 * peak.rate, seconds)
        print(f"three times that: {over}")
        refused = milliseconds(over.times.get("429", []), 50)
        print(f"goodput beside the peak: {over.rate / peak.rate:.2f}; refused in {refused}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    experiments: dict[str, Any] = {"echo": echo, "batching": batching, "swap": swap, "overload": overload}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if PIN:
        os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "models"
        # asyncio's own loop could not ask as quickly as a bare server answers
        uvloop.run(experiments[given.experiment](folder, given.seconds, given.rounds))


if __name__ == "__main__":
    main()
