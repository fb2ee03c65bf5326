"""`tf` for translators: tensors get their operators when it is loaded, which type checkers cannot see."""

from typing import Any

import timberframe

tf: Any = timberframe
