"""XLA's CPU as a device of PJRT: what users see, with JAX and without it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
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
from timberframe_core.graph.apply import apply_op
from timberframe_core.ops.definition import registry
from timberframe_pjrt.settings import settings_of

WITHOUT = "a PJRT device is used where JAX is: make peers installs it"
ROOT = Path(__file__).parents[3]
DEVICE = "/device:PJRT:0"
X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason=WITHOUT)


def config(**options: Any) -> tf.SessionConfig:
    return tf.SessionConfig(device_options={"PJRT": {"hardware": "cpu", **options}})


@pytest.fixture
def session(jax: Any) -> Iterator[tf.Session]:
    with tf.Graph().as_default() as graph, tf.device(DEVICE), tf.Session(graph=graph, config=config()) as session:
        yield session


def stages(session: tf.Session, fetches: Any, feeds: Any) -> list[str]:
    return [s.kind for s in session.explain(fetches, feeds).stages]


# Without JAX


def test_a_session_without_options_has_no_such_device() -> None:
    with tf.Session() as session:
        assert not [d for d in session.list_devices() if "PJRT" in d.name]


def test_without_jax_the_error_says_what_to_install() -> None:
    if _has_jax():
        pytest.skip("JAX is installed")
    with pytest.raises(NoSuchDeviceError, match=r"jax cannot be imported.*`pip install jax`"):
        open_target(Options("pjrt:cpu"))


def _has_jax() -> bool:
    try:
        import jax  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matmul_precision": "low"}, "device option matmul_precision is 'low'; one of 'highest', 'high', 'default'"),
        ({"device_index": "x"}, "device option device_index is 'x'; a whole number from 0 is required"),
        ({"opset": 3}, "options opset are not known; known are hardware, library"),
    ],
)
def test_a_wrong_option_is_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        settings_of({"options": {"PJRT": options}})


def test_options_of_others_are_those_of_the_plugin_in_a_library() -> None:
    found = settings_of({"options": {"PJRT": {"hardware": "acme", "library": "libacme.so", "device": "npu"}}})
    assert (found.library, dict(found.plugin_options)) == ("libacme.so", {"device": "npu"})


# With JAX


def test_a_training_step_is_one_program_and_learns_as_on_the_cpu(jax: Any) -> None:
    losses = {}
    for device in (DEVICE, "/device:CPU:0"):
        with (
            tf.Graph().as_default() as graph, tf.device(device), tf.Session(graph=graph, config=config()) as session
        ):  # fmt: skip
            rng = np.random.default_rng(1)
            x, labels = tf.placeholder(tf.float32, [8, 5]), tf.placeholder(tf.int32, [8])
            w1, b1 = (tf.Variable(rng.normal(size=s).astype(np.float32)) for s in ((5, 7), (7,)))
            w2 = tf.Variable(rng.normal(size=(7, 2)).astype(np.float32))
            hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1), b1))
            costs = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(hidden, w2))
            loss = tf.reduce_mean(costs)
            step = tf.train.AdamOptimizer(1e-2).minimize(loss)
            session.run(tf.global_variables_initializer())
            feeds = {x: rng.normal(size=(8, 5)), labels: rng.integers(0, 2, 8)}
            losses[device] = [session.run([loss, step], feeds)[0] for _ in range(5)]
            if device == DEVICE:
                assert stages(session, [loss, step], feeds) == ["cluster"]
    np.testing.assert_allclose(losses[DEVICE], losses["/device:CPU:0"], rtol=1e-5)
    assert losses[DEVICE][-1] < losses[DEVICE][0]


def test_loops_and_branches_are_part_of_the_program(session: tf.Session) -> None:
    n, start = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2])
    _, grown = tf.while_loop(lambda i, a: tf.less(i, n), lambda i, a: (i + 1, a * 2.0), [tf.constant(0), start])
    y = tf.cond(tf.less(tf.reduce_max(grown), 10.0), lambda: -grown, lambda: grown + 1.0)
    for count, expected in ((1, [-2, -4]), (3, [9, 17])):
        np.testing.assert_array_equal(session.run(y, {n: count, start: [1, 2]}), expected)
    assert stages(session, y, {n: 1, start: [1, 2]}) == ["cluster"]


def test_programs_say_how_much_memory_they_need(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    y = tf.matmul(tf.tanh(tf.matmul(x, x)), x)
    report = session.explain(y, {x: np.zeros((100, 100))}).stages[0]
    assert report.arena_bytes is not None
    assert report.arena_bytes >= 40_000


def test_an_op_without_a_translation_is_declined_with_the_reason(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(NoKernelError, match="the op has no translation to JAX"):
        session.run(tf.lgamma(x), {x: [1, 2]})


def test_float64_needs_no_setting_of_jax(jax: Any, session: tf.Session) -> None:
    x = tf.placeholder(tf.float64, [2])
    assert session.run(x + 1e-12, {x: [1, 2]})[0] == 1 + 1e-12
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("indices", ["fed", "computed"])
def test_an_index_that_xla_would_clamp_is_refused(session: tf.Session, indices: str) -> None:
    x, i = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2])
    rows = tf.gather(x, i if indices == "fed" else i + 7)
    with pytest.raises(InvalidArgumentError, match=r"index 7 at position 1 is outside \[0, 2\)"):
        session.run(rows, {x: X, i: [0, 7] if indices == "fed" else [-7, 0]})
    np.testing.assert_array_equal(session.run(rows, {x: X, i: [1, 0] if indices == "fed" else [-6, -7]}), X[::-1])


def test_an_index_is_refused_in_a_loop_and_in_a_branch(session: tf.Session) -> None:
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    start = [tf.constant(0), tf.constant(0.0)]
    _, total = tf.while_loop(lambda i, _: i < n, lambda i, total: (i + 1, total + tf.gather(x, i)), start)
    chosen = tf.cond(n > 3, lambda: tf.gather(x, n), lambda: tf.gather(x, 0))
    assert session.run(total, {x: [1, 2, 3], n: 3}) == 6
    assert stages(session, total, {x: [1, 2, 3], n: 3}) == ["cluster"]
    with pytest.raises(InvalidArgumentError, match=r"index 3 at position 0 is outside \[0, 3\)"):
        session.run(total, {x: [1, 2, 3], n: 5})
    with pytest.raises(InvalidArgumentError, match=r"index 4 at position 0 is outside \[0, 3\)"):
        session.run(chosen, {x: [1, 2, 3], n: 4})


@pytest.mark.parametrize("stride", [1, -2])
def test_a_part_whose_place_is_fed_is_that_of_one_whose_place_is_known(session: tf.Session, stride: int) -> None:
    x, at, dy = tf.placeholder(tf.float32, [7, 2]), tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2, 2])
    part = x[at : at + 2 * stride : stride]
    part.set_shape([2, 2])
    gradient = tf.gradients(part, x, dy)[0]
    values, slope = np.arange(14, dtype=np.float32).reshape(7, 2), np.ones((2, 2), np.float32)
    first = 4
    wanted = np.zeros_like(values)
    wanted[first : first + 2 * stride : stride] = slope
    got = session.run([part, gradient], {x: values, at: first, dy: slope})
    np.testing.assert_array_equal(got[0], values[first : first + 2 * stride : stride])
    np.testing.assert_array_equal(got[1], wanted)


KEPT = """
import sys

import numpy as np

import timberframe as tf

config = tf.SessionConfig(device_options={"PJRT": {"hardware": "cpu"}}, compile=sys.argv[1])
with tf.device("/pjrt:0"):
    x, i = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [2])
    w = tf.Variable(np.ones((3, 2), np.float32))
    y = tf.reduce_sum(tf.matmul(tf.gather(x, i), w), axis=1)
with tf.Session(config=config) as session:
    session.run(w.initializer)
    x_fed = np.arange(3 * int(sys.argv[2]), dtype=np.float32).reshape(-1, 3)
    print(session.run(y, {x: x_fed, i: [0, 1]}))
    session.run(y, {x: x_fed, i: [0, 7]})
"""


@pytest.mark.slow
def test_another_process_takes_the_program_from_disk_and_checks_indices_in_it(
    jax: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMBERFRAME_CACHE", str(tmp_path))

    def run(mode: str, rows: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KEPT, mode, str(rows)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for mode in ("cached", "cached_only"):
        done = run(mode, 2)
        assert done.stdout == "[ 6. 24.]\n", done.stderr
        assert "index 7 at position 1 is outside [0, 2)" in done.stderr
    done = run("cached_only", 3)
    assert not done.stdout
    assert "GatherV2 'GatherV2': /device:PJRT:0 has no compiled program" in done.stderr


def test_an_unknown_platform_is_named_with_what_there_is(jax: Any) -> None:
    with pytest.raises(NoSuchDeviceError, match=r"no platform 'nobody'; JAX knows .*cpu.*, tpu; the name of one"):
        open_target(Options("pjrt:nobody"))


def test_a_platform_without_hardware_is_named(jax: Any) -> None:
    if any(d.platform == "tpu" for d in jax.devices()):
        pytest.skip("this machine has the hardware")
    with pytest.raises(NoSuchDeviceError, match="platform 'tpu' cannot be used"):
        open_target(Options("pjrt:tpu"))


def test_a_library_that_does_not_exist_is_named(jax: Any) -> None:
    settings = (("library", "/nowhere/libacme.so"),)
    with pytest.raises(NoSuchDeviceError, match=r"library /nowhere/libacme.so does not exist; the path of a PJRT"):
        open_target(Options("pjrt:acme", settings=settings))


def test_a_library_that_is_none_is_refused_with_what_is_required(jax: Any, tmp_path: Path) -> None:
    library = tmp_path / "libacme.so"
    library.write_text("no library")
    command = "import sys; from timberframe_conformance.cli import main; sys.exit(main())"
    arguments = ["run", "--device=pjrt:acme", f"--library={library}"]
    done = subprocess.run([sys.executable, "-c", command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.search(r"libacme.so cannot be used: .*; a library with GetPjrtApi is required", done.stderr), done.stderr


# Reports and scripts


def test_reports_name_the_operations_of_stablehlo(jax: Any) -> None:
    target = open_target(Options("pjrt:cpu"))
    case = next(c for c in SUITES["forward"](target, [registry.get("Maximum")]) if dict(c.types)["T"] == "float32")
    result = judge_case(case, target)
    assert "stablehlo.maximum" in result.kernels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "status", "says"),
    [
        ("forward/Relu/float32/127-readonly-special-dynamic#17", 1, "1 of 127 elements of output_0 are wrong"),
        ("forward/Tanh/float32/12-offset#9", 0, "right"),
    ],
)
def test_the_script_of_a_case_shows_it_without_timberframe(
    jax: Any, case: str, status: int, says: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", "import sys; from timberframe_conformance.cli import main; sys.exit(main())"]
    script = subprocess.run([*command, "repro", "--device=pjrt:cpu", case], capture_output=True, text=True, check=False)
    assert script.returncode == 0, script.stderr
    assert "timberframe" not in script.stdout
    (tmp_path / "case.py").write_text(script.stdout)
    done = subprocess.run([sys.executable, str(tmp_path / "case.py")], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted((ROOT / "docs/foreign-faults").glob("xla_*.py")), ids=lambda p: p.stem)
def test_a_listed_fault_of_the_cpu_is_still_there(jax: Any, script: Path) -> None:
    """Fails when a release has mended it: the list, and the profile's waiver, are then to be brought up to date."""
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_readme_prints_what_it_says(jax: Any) -> None:
    text = (ROOT / "plugins/pjrt/README.md").read_text()
    program, printed = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", text, re.DOTALL)[0]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == printed, done.stderr


def test_reports_have_the_versions_of_jax(jax: Any) -> None:
    attributes = open_target(Options("pjrt:cpu")).device.attributes
    packages = environment(attributes.modules)["packages"]
    assert (packages["jax"], packages["jaxlib"]) == (jax.__version__, jax.lib.__version__)
    assert attributes.details["jax_default_matmul_precision"] is None


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_functions_of_several_operations_round_half_precision_once(session: tf.Session, dtype: tf.DType) -> None:
    x = np.linspace(-8, 8, 2001).astype(dtype.as_numpy_dtype)
    feed = tf.placeholder(dtype, x.shape)
    got = session.run(tf.nn.softsign(feed), {feed: x})
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(got, (wide / (1 + np.abs(wide))).astype(np.float32).astype(x.dtype))


def test_shapes_that_do_not_broadcast_are_not_equal(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [3])
    ops = [apply_op(op, [x, y], {"incompatible_shape_error": False}) for op in ("Equal", "NotEqual")]
    assert session.run(ops, {x: np.zeros(2, np.float32), y: np.zeros(3, np.float32)}) == [False, True]


def test_powers_of_subnormal_numbers_are_those_of_zero(session: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    feeds = {x: np.array([1e-45, -1e-45, 1e-40], np.float32), y: np.array([-0.5, -3.0, 2.0], np.float32)}
    np.testing.assert_array_equal(session.run(x**y, feeds), np.array([np.inf, -np.inf, 0], np.float32))


def test_the_gradient_of_a_sigmoid_overflows_only_where_its_result_does(session: tf.Session) -> None:
    y, dy = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    feeds = {y: np.array([1.25, -3e38], np.float32), dy: np.array([3e38, 0], np.float32)}
    got = session.run(apply_op("SigmoidGrad", [y, dy]), feeds)
    np.testing.assert_allclose(got, [3e38 * 1.25 * -0.25, 0], rtol=1e-6)
