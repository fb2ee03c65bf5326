"""Runs the benchmarks of this folder one after the other and writes what they print; prints it as tables.

``python plugins/ray/benchmarks/publish.py`` writes results/<name>.json beside it: a list of JSON objects.
``--tensorflow PYTHON`` has TensorFlow's servers measured beside; ``--only NAME ...`` runs some; ``--tables`` runs none.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
RUNS = {
    "null-step": "null_step.py --bytes 4 1000000",
    "parameter-server": "parameter_server.py --workers 1 2 4 --bytes 4 1000000 10000000",
    "20ms": "scaling.py --workers 1 2 4 --forward 0.00167",
    "100ms": "scaling.py --workers 1 2 4 8 16 --forward 0.00833",
    "100ms-real": "scaling.py --workers 1 2 --rows 2000",
    "all-reduce": "all_reduce.py --workers 2 --bytes 100000 1000000 2700000 10000000 30000000 100000000",
    "all-reduce-sockets": "all_reduce.py --sockets --bytes 100000 1000000 2700000 4000000 10000000 100000000",
    "pipelines": "pipelines.py --stages 2 4 --microbatches 8",
}
"""What is run for each file; the steps of scaling.py sleep for twelve times `forward`, or take some 100 ms for so many
rows."""


def lines(text: str) -> list[dict[str, Any]]:
    """Returns the JSON objects that a benchmark has printed, one a line."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def table(rows: list[dict[str, Any]]) -> str:
    """Returns rows in Markdown, under the keys of the first."""
    heads = list(rows[0])
    cells = [[_cell(row.get(head)) for head in heads] for row in rows]
    return "\n".join("|" + "|".join(x) + "|" for x in [heads, ["-"] * len(heads), *cells])


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tensorflow", help="a Python that has it")
    options.add_argument("--only", nargs="+", default=list(RUNS), choices=list(RUNS))
    options.add_argument("--tables", action="store_true")
    given = options.parse_args()
    for name in given.only:
        path = RESULTS / f"{name}.json"
        if not given.tables:
            script, *arguments = RUNS[name].split()
            if given.tensorflow and name == "null-step":
                arguments += ["--tensorflow", given.tensorflow]
            command = [sys.executable, str(HERE / script), *arguments]
            found = lines(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            path.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
        if path.exists():
            print(f"{RUNS[name]}\n\n{table(json.loads(path.read_text()))}\n", flush=True)


if __name__ == "__main__":
    main()
