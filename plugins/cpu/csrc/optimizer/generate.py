"""Writes the lists of the SDK's rules for optimizers as macros: ``generate.py RULES REAL_RULES OUTPUT``.

RULES, REAL_RULES: the headers of ``timberframe/optimizer`` with rules of all numbers, and with those of real ones.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def main(rules: Path, real_rules: Path, output: Path) -> None:
    lists = {"NUMBER_RULES": rules, "REAL_RULES": real_rules}
    output.write_text("".join(_macro(name, header.read_text()) for name, header in lists.items()))


def _macro(name: str, header: str) -> str:
    """Returns a macro that applies X to each rule of a header, and to what else it is given."""
    rules = re.findall(r"^RULE_FUNCTION\((\w+)\)", header, re.M)
    return f"#define {name}(X, ...) {' '.join(f'X({rule}, __VA_ARGS__)' for rule in rules)}\n"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
