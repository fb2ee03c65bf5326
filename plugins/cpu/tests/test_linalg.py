"""Matrix products, einsum, softmax and diagonals."""

from __future__ import annotations

import numpy as np
import pytest

import timberframe as tf
from timberframe_core.errors import InvalidArgumentError, UnimplementedError
from timberframe_cpu import packing
from timberframe_cpu.kernels.linalg import BEYOND_BLAS, gemm_parameters
from timberframe_cpu.native import available_isas, call, native, using_isa
from timberframe_cpu.testing import run_op

F = np.float32


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("n", [1, 5, 16, 33, 64, 81, 150])
def test_product_of_each_size(n, isa):
    a, b = rng().standard_normal((2, n, n)).astype(F)
    np.testing.assert_allclose(run_op("MatMul", {}, [a, b], isa)[0], a.astype(np.float64) @ b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("size", [(3, 4, 5), (70, 200, 90), (1, 300, 40), (300, 1, 40)])
@pytest.mark.parametrize("swap", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "complex64"])
def test_product_with_transposed_operands(size, swap, dtype):
    m, k, n = size
    a = (rng().standard_normal((k, m) if swap[0] else (m, k)) * 3).astype(dtype)
    b = (rng().standard_normal((n, k) if swap[1] else (k, n)) * 3).astype(dtype)
    out = run_op("MatMul", {"transpose_a": swap[0], "transpose_b": swap[1]}, [a, b])[0]
    wide = np.result_type(dtype, np.float64)
    relative, absolute = (1e-3, 0.1) if dtype == "float16" else (1e-5, 1e-3)
    expected = (a.T if swap[0] else a).astype(wide) @ (b.T if swap[1] else b).astype(wide)
    np.testing.assert_allclose(out.astype(wide), expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize("size", [(2100, 16, 48), (9, 1100, 144), (4, 700, 500), (65, 130, 250)])
@pytest.mark.parametrize("swap", [(False, False), (True, False), (False, True), (True, True)])
def test_product_of_several_parts(size, swap):
    (m, k, n), generator = size, rng()
    a = generator.standard_normal((k, m) if swap[0] else (m, k)).astype(F)
    b = generator.standard_normal((n, k) if swap[1] else (k, n)).astype(F)
    out = run_op("MatMul", {"transpose_a": swap[0], "transpose_b": swap[1]}, [a, b])[0]
    expected = (a.T if swap[0] else a).astype(np.float64) @ (b.T if swap[1] else b)
    np.testing.assert_allclose(out, expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9, 13, 200])
@pytest.mark.parametrize("swap", [False, True])
def test_a_product_with_a_matrix_packed_in_advance(isa, dtype, rows, swap):
    a = (rng().standard_normal((rows, 260)) * 3).astype(dtype)
    b = (rng().standard_normal((259, 260) if swap else (260, 259)) * 3).astype(dtype)
    (out,) = run_op("MatMul", {"transpose_b": swap}, [a, b], isa, constants=(1,))
    expected = a.astype(np.float64) @ (b.T if swap else b).astype(np.float64)
    relative, absolute = (1e-3, 0.1) if dtype == "float16" else (1e-5, 1e-3)
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=relative, atol=absolute)


def test_a_batched_product_takes_a_packed_matrix_for_all_rows():
    generator = rng()
    a, b = generator.standard_normal((3, 4, 256)).astype(F), generator.standard_normal((1, 300, 256)).astype(F)
    (out,) = run_op("BatchMatMulV2", {"adj_y": True}, [a, b], constants=(1,))
    np.testing.assert_allclose(out, a.astype(np.float64) @ b[0].T, rtol=0, atol=1e-4)


def test_a_packed_product_does_not_depend_on_the_number_of_threads():
    a, b = rng().standard_normal((130, 300)).astype(F), rng().standard_normal((300, 500)).astype(F)
    one, four = (run_op("MatMul", {}, [a, b], constants=(1,), threads=n)[0] for n in (1, 4))
    np.testing.assert_array_equal(one, four)


@pytest.mark.parametrize("isa", [isa for isa in available_isas() if isa != "scalar"])  # which packs nothing
@pytest.mark.parametrize("threads", [1, 3])
def test_one_row_by_a_packed_matrix_has_the_bits_of_many(isa, threads):
    a, b = rng().standard_normal((4, 900)).astype(F), rng().standard_normal((900, 333)).astype(F)
    many, one = (run_op("MatMul", {}, [x, b], isa, constants=(1,), threads=threads)[0] for x in (a, a[:1]))
    assert one.tobytes() == many[:1].tobytes()


def test_weights_of_a_saved_model_are_packed_once(tmp_path):
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 256], name="x")
        y = tf.matmul(x, tf.Variable(rng().standard_normal((256, 300)).astype(F)), name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    packed = 0
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], folder)
        for batch in (2, 3, 2):
            metadata = tf.RunMetadata()
            session.run("y:0", {"x:0": np.ones((batch, 256), F)}, tf.RunOptions(trace=True), metadata)
            packed += sum("prepare input 1" in e["name"] for e in metadata.trace["traceEvents"])
    assert packed == 1


def test_product_over_nothing_is_zero():
    assert run_op("MatMul", {}, [np.zeros((2, 0), F), np.zeros((0, 3), F)])[0].tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("size", [4, 100])
def test_zero_times_infinity_is_nan(size):
    a, b = np.zeros((size, size), F), np.full((size, size), np.inf, F)
    assert np.isnan(run_op("MatMul", {}, [a, b])[0]).all()


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(600, 300, 500), (40, 700, 1100), (256, 128, 128), (70, 300, 200), (200, 200, 200), (1000, 70, 65)]
)
@pytest.mark.parametrize("swap", [False, True])
def test_product_does_not_depend_on_threads(isa, dtype, shape, swap):
    m, k, n = shape
    a, b = rng().standard_normal((k, m) if swap else (m, k)).astype(dtype), rng().standard_normal((k, n)).astype(dtype)
    one, two = (run_op("MatMul", {"transpose_a": swap}, [a, b], isa, threads=t)[0] for t in (1, 2))
    assert one.tobytes() == two.tobytes()
    expected = (a.T if swap else a).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(one, expected, rtol=0, atol=1e-3 if dtype is np.float32 else 1e-11)


def test_integer_product_wraps():
    a = np.full((1, 4), 2**30, np.int32)
    assert run_op("MatMul", {}, [a, np.full((4, 1), 2, np.int32)])[0].tolist() == [[0]]


def test_small_integers_multiply_into_int32():
    x, y = np.array([[-128, 100]], np.int8), np.array([[255], [2]], np.uint8)
    out = run_op("BatchMatMulV3", {"Tout": "int32"} | {"Ta": "int8", "Tb": "uint8"}, [x, y])[0]
    assert out.tolist() == [[-128 * 255 + 200]]


def test_batches_broadcast():
    x, y = rng().standard_normal((2, 1, 3, 4)).astype(F), rng().standard_normal((5, 4, 2)).astype(F)
    np.testing.assert_allclose(run_op("BatchMatMulV2", {}, [x, y])[0], x @ y, rtol=1e-5, atol=1e-5)


def test_unequal_inner_sizes_are_named():
    with pytest.raises(InvalidArgumentError, match=r"MatMul 'node': matrices of .* inner sizes 3 and 4"):
        run_op("MatMul", {}, [np.zeros((2, 3), F), np.zeros((4, 5), F)])


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bkj->bik", "ij,kl->ikjl", "abc,cb->a", "ab,ab->ba"])
def test_einsum_of_two_operands(equation):
    sizes = dict(zip("abcijkl", (3, 4, 5, 6, 7, 2, 3), strict=True))
    operands = [rng().standard_normal([sizes[x] for x in t]).astype(F) for t in equation.split("->")[0].split(",")]
    expected = np.einsum(equation, *operands)
    np.testing.assert_allclose(run_op("Einsum", {"equation": equation}, [operands])[0], expected, rtol=1e-5, atol=1e-4)


def test_einsum_writes_a_repeated_label_as_a_diagonal():
    assert run_op("Einsum", {"equation": "i->ii"}, [[np.array([1, 2], F)]])[0].tolist() == [[1, 0], [0, 2]]


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("length", [1, 15, 64, 1000])
def test_softmax_rows_sum_to_one(length, dtype, isa):
    x = (rng().standard_normal((3, length)) * 20).astype(dtype)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = wide / wide.sum(axis=1, keepdims=True)
    limit = {"float32": 1e-6, "float64": 1e-14, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(run_op("Softmax", {}, [x], isa)[0], expected, rtol=limit, atol=1e-7)
    np.testing.assert_allclose(run_op("LogSoftmax", {}, [x], isa)[0], np.log(expected), rtol=limit, atol=limit * 10)


def test_softmax_of_huge_logits_is_finite():
    assert run_op("Softmax", {}, [np.array([[1e30, 1e30]], F)])[0].tolist() == [[0.5, 0.5]]


def test_softmax_with_nan_is_nan():
    assert np.isnan(run_op("Softmax", {}, [np.array([[1, np.nan, 3]], F)])[0]).all()


@pytest.mark.parametrize(("align", "shorter"), [("RIGHT_LEFT", [9, 3]), ("LEFT_RIGHT", [3, 9])])
def test_diagonals_are_aligned(align, shorter):
    x = np.arange(1, 5, dtype=F).reshape(2, 2)
    x[0, 1] = 3
    out = run_op("MatrixDiagPartV3", {"align": align}, [x, np.array([0, 1], np.int32), F(9)])[0]
    assert out.tolist() == [shorter, [1, 4]]


def test_band_checks_its_width_at_run_time():
    with pytest.raises(InvalidArgumentError, match=r"num_lower is 4 for 3 rows"):
        run_op("MatrixBandPart", {}, [np.zeros((3, 3), F), np.int64(4), np.int64(0)])


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("swaps", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    "sizes", [(6, 5, 64), (7, 801, 64), (8, 64, 256), (14, 9, 520), (13, 1700, 128), (101, 17, 300), (128, 128, 320)]
)
def test_products_of_register_tiles(sizes: tuple[int, int, int], swaps: tuple[bool, bool], isa: str) -> None:
    rows, depth, columns = sizes
    rng = np.random.default_rng(depth)
    a, b = rng.normal(size=(rows, depth)).astype(np.float32), rng.normal(size=(depth, columns)).astype(np.float32)
    given = [np.ascontiguousarray(x.T) if swap else x for x, swap in zip((a, b), swaps, strict=True)]
    (found,) = run_op("MatMul", {"transpose_a": swaps[0], "transpose_b": swaps[1]}, given, isa)
    wide = a.astype(np.float64) @ b.astype(np.float64)
    bound = depth * 2.0**-24 * (abs(a).astype(np.float64) @ abs(b))  # Higham, 2nd ed., section 3.5
    assert (abs(found - wide) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rows", [1, 20])
def test_product_beyond_the_blas_is_refused(rows, dtype):
    depth = 2**31
    with using_isa("scalar"):
        kernel = native(f"matmul_{dtype}", *gemm_parameters(rows, 3, depth, (0, 0), (), ()), reasons=(BEYOND_BLAS,))
    few = np.zeros(64, dtype)  # stands for the operands, which nothing may look at
    with pytest.raises(UnimplementedError, match=rf"product of {rows} x {depth} and {depth} x 3 matrices"):
        call(kernel, [few, few], [np.zeros((rows, 3), dtype)])


@pytest.mark.parametrize(("runs", "packed"), [(1, 1), (20, 3)])
def test_matrices_are_packed_only_if_versions_stay_for_some_runs(monkeypatch, runs, packed):
    made = []
    monkeypatch.setattr(packing, "call", lambda kernel, *given: made.append(kernel.name) or call(kernel, *given))
    w = rng().standard_normal((256, 300)).astype(F)
    with tf.Graph().as_default(), tf.device("/device:CPU:0"), tf.Session() as session:
        x, v = tf.placeholder(tf.float32, [2, 256]), tf.Variable(w)
        y, double, feeds = tf.matmul(x, v), v.assign(v * 2.0).op, {x: np.ones((2, 256), F)}
        session.run(v.initializer)
        for factor in (1, 2, 4):
            results = [session.run(y, feeds) for _ in range(runs)]
            np.testing.assert_allclose(results[0], factor * feeds[x] @ w, rtol=1e-4, atol=1e-3)
            assert all(r.tobytes() == results[0].tobytes() for r in results)
            session.run(double)
    assert made.count("conv2d_pack_float") == packed


def test_traced_and_checked_runs_have_the_bits_of_others_whether_matrices_are_packed_or_not():
    x, w = rng().standard_normal((5, 700)).astype(F), rng().standard_normal((700, 130)).astype(F)
    results = []
    for checks, trace in (("", False), ("", True), ("zones", False)):
        with tf.Graph().as_default(), tf.device("/device:CPU:0"):
            v = tf.Variable(w)
            y, double = tf.matmul(tf.constant(x), v), v.assign(v * 1.5).op
            with tf.Session(config=tf.SessionConfig(memory_checks=checks)) as session:
                session.run(v.initializer)
                for _ in range(3):
                    results.append(session.run(y).tobytes())
                    results.append(session.run(y, options=tf.RunOptions(trace=trace)).tobytes())
                    session.run(double)
    assert results[:6] == results[6:12] == results[12:]
