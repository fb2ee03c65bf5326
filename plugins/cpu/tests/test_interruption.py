"""Stopping long native runs, forking, threads, and the floating-point mode."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from timberframe_core.errors import CancelledError, DeadlineExceededError
from timberframe_core.plugin.contracts import RunContext
from timberframe_cpu.library import lib
from timberframe_cpu.testing import run_op

F = np.float32
BIG = np.ones((2048, 512), F)


@pytest.fixture
def endless(graph, counting):
    """A loop that never ends: a float32 that grows by 1 stops at 2^24."""
    body = graph.body()
    body = body.cluster(body.op("AddV2", body.input(F), body.const(1.0)))
    x = graph.input(F)
    out = graph.loop(x, cond=counting(graph, 1e9), body=body, node="endless")
    return graph.device.compile(graph.cluster(*out))


def test_interrupt_ends_a_native_loop(endless):
    start = time.monotonic()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        endless.run([np.array(0, F)], RunContext())
    assert time.monotonic() - start < 2


def test_interrupt_inside_a_direct_call(endless):
    call = endless.direct(lambda x: "fallback")
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        call(np.array(0, F))


def test_run_after_an_interrupt_works(endless):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        endless.run([np.array(0, F)], RunContext())
    assert endless.run([np.array(1e9, F)], RunContext()) == [1e9]


def test_threads_leave_the_callers_signals_as_they_were():
    run_op("AddV2", None, [np.ones(1 << 22, F)] * 2, threads=4)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("AddV2", [BIG, BIG]),
        ("Exp", [BIG]),
        ("Cast", [BIG]),
        ("Sum", [BIG, np.array([1])]),
        ("Softmax", [BIG]),
        ("Transpose", [BIG, np.array([1, 0])]),
        ("GatherV2", [BIG, np.arange(2048), np.array(0)]),
    ],
)
def test_kernels_share_much_work_among_threads(op, inputs):
    before = lib.tf_worker_count()
    run_op(op, {"DstT": "float64"} if op == "Cast" else None, inputs, threads=before + 2)
    assert lib.tf_worker_count() == before + 1


def test_cancelled_run_raises_the_reason(endless):
    context = RunContext()
    timer = threading.Timer(0.1, context.cancel.cancel, (DeadlineExceededError("too slow"),))
    timer.start()
    with pytest.raises(DeadlineExceededError, match="too slow"):
        endless.run([np.array(0, F)], context)


def test_cancelled_run_in_a_thread_of_its_own(endless):
    context, raised = RunContext(), []

    def work():
        try:
            endless.run([np.array(0, F)], context)
        except CancelledError as e:
            raised.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    context.cancel.cancel(CancelledError("closed"))
    thread.join(5)
    assert [str(e) for e in raised] == ["closed"]


USE_BUILD = """
import os, sys
if "TIMBERFRAME_CPU_TESTED_SITE" in os.environ:  # set by sanitize.py
    sys.meta_path = [f for f in sys.meta_path if type(f).__name__ != "MesonpyMetaFinder"]
    sys.path.insert(0, os.environ["TIMBERFRAME_CPU_TESTED_SITE"])
"""


def run_script(body: str, **environment: str) -> str:
    script = USE_BUILD + textwrap.dedent(body)
    environment = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PREPARE = """
import os, sys
import numpy as np
from timberframe_core.plugin.contracts import Cluster, KernelNode, RunContext, Value
from timberframe_core.plugin.kernels import KernelRegistry
from timberframe_core import dtypes
import timberframe_core.ops.definition.registry
from timberframe_cpu.device import CpuDevice
from timberframe_cpu.kernels import all_kernels
from timberframe_cpu.library import lib
device = CpuDevice(threads=4)
device.kernels = KernelRegistry()
device.kernels.register(all_kernels())
x = Value(0, np.dtype("f4"), (4_000_000,), "input")
y = Value(1, np.dtype("f4"), (4_000_000,))
node = KernelNode("AddV2", "add", {"T": dtypes.float32}, [x, x], [y], device)
executable = device.compile(Cluster(device, [node], [x], [y]))
feed = np.ones(4_000_000, np.float32)
"""


def test_child_of_a_fork_runs_with_threads_of_its_own():
    body = PREPARE + (
        "executable.run([feed], RunContext())\n"
        "assert lib.tf_worker_count() == 3, lib.tf_worker_count()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    before = lib.tf_worker_count()\n"
        "    (out,) = executable.run([feed], RunContext())\n"
        "    os._exit(0 if (out == 2).all() and before == 0 and lib.tf_worker_count() == 3 else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "executable.run([feed], RunContext())\n"
    )
    run_script(body)


@pytest.mark.slow
def test_fork_while_another_thread_runs():
    body = PREPARE + (
        "import threading\n"
        "stop = False\n"
        "def work():\n"
        "    while not stop: executable.run([feed], RunContext())\n"
        "thread = threading.Thread(target=work); thread.start()\n"
        "for _ in range(10):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        (out,) = executable.run([feed], RunContext())\n"
        "        os._exit(0 if (out == 2).all() else 1)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "stop = True; thread.join()\n"
    )
    run_script(body)


@pytest.mark.slow
def test_interpreter_exits_with_a_run_in_flight():
    body = PREPARE + (
        "import threading\n"
        "def work():\n"
        "    while True: executable.run([feed], RunContext())\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "import time; time.sleep(0.1)\n"
        "print('exits')\n"
    )
    assert run_script(body) == "exits"


def test_blas_starts_no_threads():
    body = """
    import os
    import numpy
    before = len(os.listdir("/proc/self/task"))
    import timberframe_cpu.library
    print(len(os.listdir("/proc/self/task")) - before, os.environ["OPENBLAS_NUM_THREADS"])
    """
    assert run_script(body, OPENBLAS_NUM_THREADS="8") == "0 8"


def test_kernels_round_to_nearest_whatever_the_caller_set(graph):
    libm = ctypes.CDLL(None)
    upward = 0x800 if os.uname().machine == "x86_64" else 0x400000
    x = graph.input(F)
    executable = graph.device.compile(graph.cluster(graph.op("AddV2", x, graph.const(2.0**-30))))
    try:
        libm.fesetround(upward)
        (out,) = executable.run([np.array(1, F)], RunContext())
        after = libm.fegetround()
    finally:
        libm.fesetround(0)
    assert out == 1
    assert after == upward


def test_run_cancelled_inside_a_kernel_does_not_look_complete(graph):
    n = 2_000_000
    x = graph.input(F, n)
    executable = graph.device.compile(graph.cluster(graph.op("AddV2", x, x)))
    feed = np.ones(n, F)
    for delay in (0, 1e-4, 2e-4, 4e-4, 8e-4):
        context = RunContext()
        timer = threading.Timer(delay, context.cancel.cancel, (CancelledError("stop"),))
        timer.start()
        try:
            (out,) = executable.run([feed], context)
        except CancelledError:
            continue
        finally:
            timer.join()
        assert (out == 2).all()


def test_variable_overwritten_in_place_is_whole_after_cancelling(graph):
    from timberframe_core.dtypes import float32
    from timberframe_core.plugin.contracts import Update, Variable

    n = 2_000_000
    variable = Variable("v", 0, graph.device, float32)
    variable.commit(np.zeros(n, F), (n,))
    old = graph.read(variable)
    new = graph.op("AddV2", old, graph.const(1.0))
    executable = graph.device.compile(graph.cluster(updates=[Update(variable, old, new, True)]))
    for delay in (0, 1e-4, 2e-4, 4e-4):
        context = RunContext()
        timer = threading.Timer(delay, context.cancel.cancel, (CancelledError("stop"),))
        timer.start()
        with contextlib.suppress(CancelledError):
            executable.run([], context)
        timer.join()
        assert variable.version.array.min() == variable.version.array.max()
