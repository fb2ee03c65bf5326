"""Writes which script each character of Unicode has, by the numbers of TensorFlow's `unicode_script`.

Run it with a Python that has tensorflow:

    python conformance/tools/unicode_scripts.py core/src/timberframe_ops/strings/unicode_scripts.json

The file holds pairs of the first code point of a range and the script of all up to the next range.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

COUNT = 0x110000


def main() -> None:
    import tensorflow as tf

    scripts = tf.strings.unicode_script(np.arange(COUNT, dtype=np.int32)).numpy()
    starts = np.flatnonzero(np.diff(scripts, prepend=-1))
    ranges = [[int(start), int(scripts[start])] for start in starts]
    Path(sys.argv[1]).write_text(json.dumps(ranges, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
