"""The CPU of PyTorch as a device, and a backend of the tests: what users see."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timberframe as tf
from timberframe_conformance.judge import judge_case
from timberframe_conformance.options import Options
from timberframe_conformance.reports.environment import environment
from timberframe_conformance.suites import SUITES
from timberframe_conformance.target import NoSuchDeviceError, open_target
from timberframe_core.errors import InvalidArgumentError, NoKernelError
from timberframe_core.ops.definition import registry
from timberframe_torch import lazy
from timberframe_torch.arrays import from_bytes, host_bytes, layout_of, view_of
from timberframe_torch.settings import settings_of
from timberframe_torch.tracing import Event, computed_on_host

WITHOUT = "a backend of PyTorch is used where PyTorch is: make peers installs it"
ROOT = Path(__file__).parents[3]
X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason=WITHOUT)


def config(**options: Any) -> tf.SessionConfig:
    return tf.SessionConfig(device_options={"TORCH": {"hardware": "cpu", **options}})


@pytest.fixture
def graph(torch: Any) -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph, tf.device("/torch:0"):
        yield graph


# Without PyTorch


def test_a_session_without_options_has_no_such_device() -> None:
    with tf.Session() as session:
        assert not [d for d in session.list_devices() if "TORCH" in d.name]


def test_without_pytorch_the_error_says_what_to_install() -> None:
    if _has_torch():
        pytest.skip("PyTorch is installed")
    with pytest.raises(NoSuchDeviceError, match=r"torch cannot be imported.*PyTorch is required"):
        open_target(Options("torch:cpu"))


def _has_torch() -> bool:
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"views": "some"}, "device option views is 'some'; one of 'fed', 'all', 'none' is required"),
        ({"device_index": "x"}, "device option device_index is 'x'; a whole number from 0 is required"),
        ({"opset": 3}, "options opset are not known; known are hardware, module"),
    ],
)
def test_a_wrong_option_is_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        settings_of({"options": {"TORCH": options}})


def test_indices_are_for_the_cpu_to_refuse_and_checked_elsewhere() -> None:
    found = [settings_of({"options": {"TORCH": {"hardware": name}}}).checks_indices for name in ("cpu", "xpu")]
    assert found == [False, True]


WHOLE = np.arange(30, dtype=np.float32).reshape(5, 6)


@pytest.mark.parametrize(
    ("x", "strides", "offset"),
    [
        (WHOLE[:, ::2], (6, 2), 0),
        (WHOLE.ravel()[1:25].reshape(4, 6), (6, 1), 1),
        (np.asfortranarray(WHOLE), (1, 5), 0),
        (np.broadcast_to(WHOLE[0], (3, 6)), (0, 1), 0),
    ],
    ids=["strided", "offset", "fortran", "broadcast"],
)
def test_a_view_keeps_its_strides_and_its_elements(x: np.ndarray, strides: tuple[int, ...], offset: int) -> None:
    layout = layout_of(x)
    assert layout is not None
    assert (layout.strides, layout.offset) == (strides, offset)
    np.testing.assert_array_equal(from_bytes(host_bytes(x, layout), x.dtype, x.shape, layout), x)


@pytest.mark.parametrize("x", [WHOLE, WHOLE[::-1], np.float32(3).reshape(()), WHOLE[:0]])
def test_other_arrays_lie_in_order(x: np.ndarray) -> None:
    assert layout_of(x) is None


def test_a_view_of_any_shape_has_gaps_and_begins_later() -> None:
    layout = view_of((2, 3))
    assert layout is not None
    assert (layout.strides, layout.offset, layout.span) == ((8, 2), 3, 13)


def test_the_boxed_fallback_and_a_kernel_that_calls_the_cpu_are_told_apart() -> None:
    events = [
        Event("aten::exp", "[6]", 0, 10), Event("aten::exp", "[6, 6]", 1, 9), Event("aten::_to_cpu", "", 2, 3),
        Event("aten::sigmoid", "[6]", 20, 30), Event("aten::to", "[6]", 21, 23), Event("aten::sigmoid", "[6]", 24, 26),
        Event("aten::add", "[6]", 40, 50), Event("aten::empty", "", 41, 42),
    ]  # fmt: skip
    assert computed_on_host(events) == {
        "aten::exp": "aten::exp, by the boxed fallback to the CPU",
        "aten::sigmoid": "aten::sigmoid, by the CPU from within the backend's kernel",
    }


# With PyTorch


@pytest.mark.parametrize("views", ["fed", "all", "none"])
def test_kernels_compute_on_views_as_on_tensors_in_order(graph: tf.Graph, views: str) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    w = tf.constant(np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5))
    y = tf.reduce_sum(tf.tanh(tf.matmul(x, w)), axis=1)
    wanted = np.tanh(X.astype(np.float64) @ np.linspace(-1, 1, 15).reshape(3, 5)).sum(axis=1)
    with tf.Session(config=config(views=views)) as session:
        for fed in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
            np.testing.assert_allclose(session.run(y, {x: fed}), wanted, rtol=1e-5)
        assert {s.device for s in session.explain(y, {x: X}).stages} == {"/device:TORCH:0"}


def test_a_variable_is_trained(graph: tf.Graph) -> None:
    x, w = tf.placeholder(tf.float32, [2, 3]), tf.Variable(np.ones((3, 1), np.float32))
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    step = tf.train.MomentumOptimizer(0.005, 0.5).minimize(loss)
    with tf.Session(config=config()) as session:
        session.run(tf.global_variables_initializer())
        before = session.run(loss, {x: X})
        for _ in range(5):
            session.run(step, {x: X})
        assert session.run(loss, {x: X}) < before / 2


def test_what_torch_has_no_kernel_for_is_named_in_its_words(
    torch: Any, graph: tf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*args: Any) -> Any:  # which dtypes lack a kernel changes from release to release
        raise RuntimeError("\"max_pool2d\" not implemented for 'Char'")

    monkeypatch.setattr(torch.nn.functional, "max_pool2d", refusing)
    x = tf.placeholder(tf.int8, [2, 3])
    with (
        tf.Session(config=config()) as session,
        pytest.raises(NoKernelError, match=re.escape("not implemented for 'Char'")),
    ):
        session.run(tf.nn.max_pool(tf.reshape(x, [1, 2, 3, 1]), [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), {x: X})


def test_an_index_that_torch_refuses_is_named(graph: tf.Graph) -> None:
    x, i = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2])
    with (
        tf.Session(config=config()) as session,
        pytest.raises(InvalidArgumentError, match=r"index 7 at position 1 is outside \[0, 2\)"),
    ):
        session.run(tf.gather(x, i), {x: X, i: [0, 7]})


def test_a_backend_that_is_absent_is_named_with_what_there_is(torch: Any) -> None:
    with pytest.raises(NoSuchDeviceError, match=r"no backend 'nobody'; the backends of torch .* are cpu, cuda"):
        open_target(Options("torch:nobody"))


def test_a_backend_without_hardware_is_named(torch: Any) -> None:
    if torch.backends.mps.is_available():
        pytest.skip("this machine has the hardware")
    with pytest.raises(NoSuchDeviceError, match=r"mps:0 cannot be used"):
        open_target(Options("torch:mps"))


def test_switches_of_the_process_are_in_the_attributes(torch: Any) -> None:
    details = open_target(Options("torch:cpu")).device.attributes.details
    assert details["matmul precision"] == "highest"
    assert details["deterministic"] is False
    assert details["denormals on the CPU"] == "kept"


def test_reports_have_torchs_version(torch: Any) -> None:
    modules = open_target(Options("torch:cpu")).device.attributes.modules
    assert environment(modules)["packages"]["torch"] == torch.__version__


def test_kernels_have_the_sessions_threads_in_every_thread_of_the_process(
    torch: Any, graph: tf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def relu(x: Any) -> Any:
        seen.append(torch.get_num_threads())
        return x.clone()

    monkeypatch.setattr(lazy, "relu", relu)
    before = torch.get_num_threads()
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.nn.relu(x)
    one = tf.SessionConfig(device_options={"TORCH": {"hardware": "cpu"}}, intra_op_parallelism_threads=before + 1)
    with tf.Session(config=one) as more, tf.Session(config=config()) as own:
        for session in (more, own, more):
            session.run(y, {x: X})
            _in_a_thread(lambda session=session: session.run(y, {x: X}))  # type: ignore[misc] # its default is its type
    assert seen == [before + 1] * 2 + [before] * 2 + [before + 1] * 2


def test_a_convolution_adds_in_the_same_order_in_every_thread(torch: Any, graph: tf.Graph) -> None:
    """A thread that is new to torch gives kernels of oneDNN as many threads as OpenMP has, whatever was set."""
    rng = np.random.default_rng(0)
    x, gradient = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 8, 8, 3), (4, 4, 4, 8)))
    fed, by = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, gradient.shape)
    made = tf.nn.conv2d_backprop_filter(fed, [3, 3, 3, 8], by, [1, 2, 2, 1], "SAME")
    found: list[np.ndarray] = []
    one = tf.SessionConfig(device_options={"TORCH": {"hardware": "cpu"}}, intra_op_parallelism_threads=1)
    with tf.Session(config=one) as session:
        found.append(session.run(made, {fed: x, by: gradient}))
        _in_a_thread(lambda: found.append(session.run(made, {fed: x, by: gradient})))
    np.testing.assert_array_equal(found[1], found[0])


def _in_a_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


# A backend that falls back


@pytest.fixture(scope="module")
def mock() -> Any:
    pytest.importorskip("torch", reason=WITHOUT)
    mock_backend = pytest.importorskip("mock_backend", exc_type=FileNotFoundError, reason="it needs a C++ compiler")
    return open_target(Options("torch:mock", settings=(("module", mock_backend.__name__),)))


@pytest.mark.slow
@pytest.mark.timeout(900)  # the backend is compiled once
@pytest.mark.parametrize(
    ("op", "kernels"),
    [
        ("Relu", ("aten::relu",)),
        ("Exp", ("aten::exp, by the boxed fallback to the CPU (fallback)",)),
        ("Sigmoid", ("aten::sigmoid, by the CPU from within the backend's kernel (fallback)",)),
    ],
)
def test_who_computes_an_op_of_a_backend_is_said(mock: Any, op: str, kernels: tuple[str, ...]) -> None:
    cases = [c for c in SUITES["forward"](mock, [registry.get(op)]) if dict(c.types)["T"] == "float32"]
    result = next(r for r in (judge_case(c, mock) for c in cases if "7x13" in c.detail) if r.verdict == "pass")
    assert result.fallback == ("fallback" in kernels[0])
    assert set(kernels) <= set(result.kernels), result.kernels


# Scripts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "status", "says"),
    [
        ("forward/Sigmoid/float32/9-offset#9", 1, "1 of 9 elements of y0 are wrong"),
        ("forward/Tanh/float32/12-offset#9", 0, "right"),
    ],
)
def test_the_script_of_a_case_shows_it_without_timberframe(
    torch: Any, case: str, status: int, says: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", "import sys; from timberframe_conformance.cli import main; sys.exit(main())"]
    script = subprocess.run(
        [*command, "repro", "--device=torch:cpu", case], capture_output=True, text=True, check=False
    )
    assert script.returncode == 0, script.stderr
    assert "timberframe" not in script.stdout.replace("timberframe_core.", "").split('"""')[2]
    (tmp_path / "case.py").write_text(script.stdout)
    done = subprocess.run([sys.executable, str(tmp_path / "case.py")], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted((ROOT / "docs/foreign-faults").glob("torch_*.py")), ids=lambda p: p.stem)
def test_a_listed_fault_of_the_cpu_is_still_there(torch: Any, script: Path) -> None:
    """Fails when a release has mended it: the list, and the profile's waiver, are then to be brought up to date."""
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_readme_prints_what_it_says(torch: Any) -> None:
    text = (ROOT / "plugins/torch/README.md").read_text()
    program, printed = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", text, re.DOTALL)[0]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == printed, done.stderr
