"""Single native kernels: look-up, call, variants, and what the test helper finds."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from timberframe_core.errors import InternalError, InvalidArgumentError, NotFoundError
from timberframe_core.ops.definition.opdef import define_op
from timberframe_cpu import native, testing
from timberframe_sdk.native import Native, words
from timberframe_sdk.testing.loaded import temporary_ops


def test_copy_kernel_copies_bytes() -> None:
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    native.call(native.native("copy", x.nbytes), [x], [y])
    np.testing.assert_array_equal(x, y)


def test_parameters_become_words() -> None:
    assert words((True, 7, 1.0, 2**64 - 1, np.int32(-3))) == (1, 7, 0x3FF0000000000000, -1, -3)


def test_unknown_kernel_is_named() -> None:
    with pytest.raises(NotFoundError, match="native kernel no_such_kernel"):
        native.native("no_such_kernel")


def test_absent_variant_falls_back_to_scalar() -> None:
    assert native.find("copy", native.available_isas()[-1])[1] == "scalar"


def test_isa_is_chosen_in_a_block_only() -> None:
    before = native.isa()
    with native.using_isa("scalar"):
        assert native.isa() == "scalar"
    assert native.isa() == before


def test_unknown_isa_lists_what_the_machine_has() -> None:
    with pytest.raises(InvalidArgumentError, match="this machine has scalar"), native.using_isa("sse9"):
        pass


def test_non_contiguous_array_is_refused() -> None:
    x = np.zeros((4, 4), np.float32)[:, ::2]
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        native.call(native.native("copy", x.nbytes), [x], [np.zeros((4, 2), np.float32)])


@pytest.fixture
def copy_op() -> Iterator[str]:
    name = "Test>Copy"
    with temporary_ops():
        define_op(
            name, inputs=["x: T"], outputs=["y: T"], attrs=["T: type"], doc="A copy.", shape=lambda c: [c.shapes[0]]
        )
        yield name


def _use(monkeypatch: pytest.MonkeyPatch, op: str, build: object) -> None:
    from timberframe_core.plugin.contracts import KernelDef
    from timberframe_core.plugin.kernels import KernelRegistry

    kernels = KernelRegistry()
    kernels.register([KernelDef(op, "CPU", build)])  # type: ignore[arg-type]  # tests hand in lambdas
    monkeypatch.setattr(testing, "_registry", lambda: kernels)


def test_run_op_returns_the_outputs(monkeypatch: pytest.MonkeyPatch, copy_op: str) -> None:
    _use(monkeypatch, copy_op, lambda n: native.native("copy", n.outputs[0].nbytes))
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.testing.assert_array_equal(testing.run_op(copy_op, {}, [x])[0], x)


def test_run_op_finds_a_write_past_the_end(monkeypatch: pytest.MonkeyPatch, copy_op: str) -> None:
    _use(monkeypatch, copy_op, lambda n: native.native("copy", n.outputs[0].nbytes + 1))
    x = np.zeros(9, np.uint8)[:8]
    with pytest.raises(InternalError, match="output 0: 1 bytes after it were written, the first at offset 0"):
        testing.run_op(copy_op, {}, [x], fence="")


def test_run_op_runs_python_launchers(monkeypatch: pytest.MonkeyPatch, copy_op: str) -> None:
    def build(_: object) -> object:
        def launch(x: np.ndarray, out: np.ndarray) -> None:
            out[...] = x

        return launch

    _use(monkeypatch, copy_op, build)
    x = np.array([b"a", b"bc"], object)
    np.testing.assert_array_equal(testing.run_op(copy_op, {}, [x])[0], x)


def test_kernel_without_words_for_its_reason_says_so() -> None:
    from timberframe_sdk.native import failure

    error = failure("Op", "n", 3, 2, [1, 2, 3, 4], Native("k", 0).reasons)
    assert isinstance(error, InvalidArgumentError)
    assert "Op 'n'" in str(error)


@pytest.mark.parametrize("fence", ["start", "end"])
def test_run_op_gives_kernels_no_byte_outside_their_inputs(
    monkeypatch: pytest.MonkeyPatch, copy_op: str, fence: str
) -> None:
    addresses = []

    def launch(x: np.ndarray, out: np.ndarray) -> None:
        addresses.append(x.ctypes.data + (x.nbytes if fence == "end" else 0))

    _use(monkeypatch, copy_op, lambda _: launch)
    testing.run_op(copy_op, {}, [np.zeros(9, np.int16)], fence=fence)
    assert addresses[0] % mmap.PAGESIZE == 0


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="the system lists no features of processors")
def test_the_best_variant_follows_from_the_processors_features() -> None:
    """As the system lists them, which leaves out those whose registers it does not save."""
    flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[0].split())
    avx2 = {"avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "popcnt"} <= flags
    avx512 = avx2 and {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags
    amx = avx512 and {"avx512_bf16", "amx_tile", "amx_bf16"} <= flags
    best = "amx" if amx else "avx512" if avx512 else "avx2" if avx2 else "scalar"
    assert native.available_isas()[-1] == best
