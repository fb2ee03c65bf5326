"""The names of torch, which is imported when the first of them is looked up here.

A process that only knows of the plugin does not wait for that, and needs no PyTorch. Modules import this as `torch`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import torch

    found = getattr(torch, name)
    globals()[name] = found
    return found
