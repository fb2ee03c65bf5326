"""The end of a program that shows a failure: which outputs it takes for wrong."""

from __future__ import annotations

import subprocess
import sys
import zlib

import numpy as np
import pytest

from timberframe_sdk import Judged
from timberframe_sdk.scripts import (
    COMPARISON,
    DRAWING,
    PACKING,
    UNPACK,
    Draw,
    array_text,
    judged_entries,
    without_packing,
)


@pytest.mark.parametrize(
    ("got", "want", "status"),
    [
        ([np.inf, 1.5], [4.6e120, 1.5], 0),  # the truth is no float32: rounded it is infinite
        ([np.float32(0.1), 1.5], [0.1, 1.5], 0),
        ([np.inf, 1.5], [3e38, 1.5], 1),
        ([np.nan, 1.5], [4.6e120, 1.5], 1),
    ],
)
def test_a_result_that_is_the_rounded_truth_is_right(got: list[float], want: list[float], status: int) -> None:
    given = (
        "import sys\nimport numpy as np\ninf, nan = np.inf, np.nan\n"
        f'got = {{"y": np.array({[float(x) for x in got]}, np.float32)}}\n'
        f'expected, allowed, looked_at = {{"y": np.array({want}, np.float64)}}, {{"y": 0.0}}, {{}}\n'
    )
    done = subprocess.run([sys.executable, "-c", given + COMPARISON], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr


def _drawn() -> tuple[Draw, np.ndarray]:
    """Returns how 100,000 numbers are drawn, and the numbers as float32 with three others among them."""
    draw = Draw(12345, 2 * 678 + 1, -4.0, 4.0, 100_000)
    x = draw.array().astype(np.float32).reshape(1000, 100)
    x[0, 7], x[3, 3], x[999, 99] = np.nan, -0.0, 1e-45
    return draw, x


def _run(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def test_large_arrays_are_drawn_once_more() -> None:
    draw, x = _drawn()
    text = array_text(x, [Draw(1, 3, 0.0, 1.0, x.size), draw])
    assert len(text) < 400
    imports = f"{PACKING}import sys\nimport numpy as np\n"
    done = _run(without_packing(f"{imports}{UNPACK}{DRAWING}\nx = {text}\nprint(x.shape, zlib.crc32(x.tobytes()))"))
    assert done.stdout.split(") ") == ["(1000, 100", f"{zlib.crc32(x.tobytes())}\n"], done.stderr


def test_arrays_that_nobody_drew_are_packed() -> None:
    draw, x = _drawn()
    assert array_text(x + 1, [draw]).startswith("unpack(")


def test_another_stream_of_random_numbers_is_not_taken_for_a_fault() -> None:
    draw, x = _drawn()
    text = array_text(x, [draw]).replace(", 12345,", ", 12346,").replace("drawn(12345,", "drawn(12346,")
    done = _run(f"{PACKING}import sys\nimport numpy as np\n{DRAWING}\n{text}")
    assert (done.returncode, "draws other random numbers" in done.stdout) == (2, True)


@pytest.mark.parametrize(("mended", "status"), [(False, 1), (True, 0)])
def test_of_large_outputs_wrong_elements_are_looked_at(mended: bool, status: int) -> None:
    want = np.arange(50_000, dtype=np.float64).reshape(500, 100)
    got = want.astype(np.float32)
    got[[3, 400], [14, 99]] += 1
    lines = judged_entries({"y": Judged(got, want, np.full(want.shape, 0.5))})
    assert len(lines) < 600
    shown = "want" if mended else "want + (want == 314) + (want == 40099)"
    made = f"want = np.arange(50_000.0, dtype=np.float32).reshape(500, 100)\ngot = {{'y': {shown}}}\n"
    done = _run(f"import sys\nimport numpy as np\n{made}{lines}{COMPARISON}")
    assert done.returncode == status, done.stdout + done.stderr
    if not mended:
        assert "y[400, 99]: got np.float32(40100.0), expected np.float64(40099.0)" in done.stdout
        assert "2 of 2 elements of y that are looked at are wrong" in done.stdout
