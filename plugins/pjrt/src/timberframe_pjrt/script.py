"""Writes a run of a program as a program of jax and numpy alone, for the tracker of a PJRT plugin's vendor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from timberframe_pjrt.lowering import computing
from timberframe_pjrt.platforms import Platform
from timberframe_pjrt.settings import Settings
from timberframe_sdk import Judged
from timberframe_sdk.recording import RecordedRun
from timberframe_sdk.scripts import (
    COMPARISON,
    DRAWING,
    PACKING,
    UNPACK,
    Draw,
    array_text,
    entries,
    judged_entries,
    quoted,
    without_packing,
)

_MOST_NAMES = 8
_IMPORTS = f"""{PACKING}import sys

import jax
import jax.extend
import numpy as np
"""
_COMPILE = '''
def computed(device):
    """Returns the outputs of the module on a device."""
    options = jax.extend.backend.get_compile_options(num_replicas=1, num_partitions=1)
    program = device.client.compile_and_load(MODULE, (device,), options)
    arrays = [jax.device_put(x, device) for x in inputs.values()]
    outputs = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return {f"output_{i}": np.asarray(x[0]) for i, x in enumerate(outputs)}

'''
_RUN = """
jax.config.update("jax_enable_x64", True)
try:
    got = computed(jax.local_devices(backend=PLATFORM)[DEVICE_INDEX])
except Exception as e:
    print(f"{type(e).__name__}: {e}")
    print("wrong: the module is refused, or does not run")
    sys.exit(1)
"""
_CPU = """if not expected:  # the case does not compare the outputs by themselves: XLA's CPU is the yardstick
    expected = computed(jax.local_devices(backend="cpu")[0])
    allowed = {n: 1e-7 + 1e-3 * np.abs(np.asarray(x, np.float64)) for n, x in expected.items() if x.dtype.kind == "f"}
"""


def write_script(
    run: RecordedRun,
    judged: Mapping[str, Judged],
    title: str,
    platform: Platform,
    settings: Settings,
    draws: Sequence[Draw] = (),
) -> str:
    """Returns the program: it runs the module on the device, and ends with status 1 as long as the outputs are wrong.

    Outputs that were not judged are compared with those of XLA's CPU; of the CPU itself there is then no yardstick.
    """
    module = run.program.decode()
    is_host = platform.name == "cpu"
    text = [
        f'"""{_names(module)} on {platform.name}.\n\n{quoted(title)}\n\nSeen with jax {jax.__version__}, '
        f"{quoted(platform.version)}.",
        f'Needs jax and numpy. {_status(bool(judged), is_host)}\n"""\n',
        _IMPORTS,
        f"PLATFORM, DEVICE_INDEX = {platform.name!r}, {settings.device_index}",
        *([_library(platform, settings)] if platform.library else []),
        UNPACK,
        DRAWING,
        f'MODULE = r"""\n{module}"""\n',
        f"inputs = {entries({name: _array(x, draws) for name, x in run.inputs.items()})}",
        judged_entries(judged),
        _COMPILE + _RUN + ("" if judged or is_host else _CPU) + COMPARISON,
    ]
    return without_packing("\n".join(text))


def _status(is_judged: bool, is_host: bool) -> str:
    if is_judged:
        return "Status 1: the outputs are wrong, or there are none."
    than = "there are none" if is_host else "they differ from those of XLA's CPU, or there are none"
    return f"The case does not compare these outputs by themselves. Status 1: {than}."


def _names(module: str) -> str:
    shown = computing(list(dict.fromkeys(re.findall(r"\bstablehlo\.\w+", module)))) or ("no operation",)
    return ", ".join(shown[:_MOST_NAMES]) + (", ..." if len(shown) > _MOST_NAMES else "")


def _library(platform: Platform, settings: Settings) -> str:
    """Returns the lines that have JAX load the plugin's library, whose path is the program's argument."""
    options = dict(settings.plugin_options) or None
    return (
        "from jax._src import xla_bridge\n\n"
        f"library = sys.argv[1] if len(sys.argv) > 1 else {platform.library!r}\n"
        f"xla_bridge.register_plugin(PLATFORM, library_path=library, options={options!r})"
    )


def _array(x: np.ndarray, draws: Sequence[Draw]) -> str:
    """Returns an expression for an input."""
    if x.dtype.isbuiltin == 1:
        return array_text(x, draws)
    return f"{array_text(x.astype(np.float32))}.astype(jax.numpy.{x.dtype.name})"
