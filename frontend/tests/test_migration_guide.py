"""docs/migrate.md says how many names are here: the table of the tests says so, too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "migrate.md").read_text()
_ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "data" / "tensorflow1_names.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("state", ["have", "never", "foreign", "missing"])
def test_the_guide_counts_names_as_the_table_does(state: str) -> None:
    labels = {"have": "here, each tried", "never": "never here", "foreign": "slips", "missing": "missing"}
    found = re.search(rf"^\|{labels[state]}[^|]*\|(\d+)\|([\d,]+)\|$", GUIDE, re.MULTILINE)
    uses = [int(count) for _, count, own in _ROWS if own == state]
    assert found is not None
    assert (int(found[1]), int(found[2].replace(",", ""))) == (len(uses), sum(uses))


def test_the_commands_of_the_guide_print_what_it_says(tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert program is not None
    (tmp_path / "linear.py").write_text(program[1])
    (tmp_path / "keras_model.py").write_text("import tensorflow as tf\nmodel = tf.keras.Sequential()\n")
    transcript = "\n".join(re.findall(r"```\n(\$.*?)\n```", GUIDE, re.DOTALL))
    for command, wanted in re.findall(r"^\$ python -m (.*)\n((?:(?!\$).*(?:\n|$))*)", transcript, re.MULTILINE):
        done = subprocess.run(
            [sys.executable, "-m", *command.split()], capture_output=True, text=True, cwd=tmp_path, timeout=60
        )
        assert (done.stdout, done.stderr) == (wanted.rstrip("\n") + "\n", ""), command
