"""The end of a program that shows a failure: which outputs it takes for wrong."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from timberframe_sdk.scripts import COMPARISON


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
        f'expected, allowed = {{"y": np.array({want}, np.float64)}}, {{"y": 0.0}}\n'
    )
    done = subprocess.run([sys.executable, "-c", given + COMPARISON], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
