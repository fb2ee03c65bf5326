"""`python -m timberframe devices|ops|kernels|doctor`: what is installed, and whether it works."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from timberframe_core import logging
from timberframe_core.config import SessionConfig
from timberframe_core.dtypes import BY_NAME
from timberframe_core.errors import OpError, UnavailableError
from timberframe_core.failures import describe_failure
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.plugin import loader
from timberframe_core.runtime.devices import devices_for
from timberframe_core.standard_output import run_command

_PROBE_SECONDS = 60
_SHOWN = {"name", "inputs", "outputs", "attrs", "doc", "shape_inputs", "launch_inputs", "level", "python_names"}
"""Fields of an op's definition that are no traits, or are shown in other lines."""
_NO_DEVICE, _CAUTION = 3, 4
"""The status of a probe where a plugin works and its hardware is missing, or there is something to say of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one of the commands; 0 if all is well, 1 if something is missing or broken, 2 for a wrong call.

    READER_LEFT if nobody reads the output to its end.
    """
    parser = argparse.ArgumentParser("python -m timberframe", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    devices = commands.add_parser("devices", help="the devices that there are, and the plugins that failed")
    ops = commands.add_parser("ops", help="the ops that are defined")
    ops.add_argument("name", nargs="?", help="prints all about one op")
    kernels = commands.add_parser("kernels", help="which kernels there are")
    kernels.add_argument("op", nargs="?", help="only the kernels of this op")
    kernels.add_argument("--device", help="only kernels of this device type")
    commands.add_parser("doctor", help="tries each plugin in processes of its own, alone and with the others")
    for p in (devices, ops, kernels):
        p.add_argument("--json", action="store_true", help="prints JSON")
    probe = commands.add_parser("probe")  # the child process of doctor
    probe.add_argument("plugin")
    probe.add_argument("others", nargs="*")
    chosen = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = globals()[f"_{chosen.command}"]
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # the commands print which plugins failed
    try:
        return run_command(lambda: command(chosen))
    except OpError as e:
        print(e, file=sys.stderr)
        return 1
    finally:
        logging.set_verbosity(verbosity)


def _devices(arguments: argparse.Namespace) -> int:
    found = devices_for(SessionConfig())
    failures = loader.registry.failures()
    cautions = {p.name: p.caution for p in loader.registry.plugins.values() if p.caution}
    rows: list[dict[str, Any]] = [
        {
            "device": d.spec,
            "priority": d.priority,
            "model": d.attributes.model,
            "vendor": d.attributes.vendor,
            "driver": d.attributes.driver,
            "memory": d.attributes.memory,
            "dtypes": list(d.attributes.dtypes),
        }
        for d in found
    ]
    if arguments.json:
        failed = {n: repr(e) for n, e in failures.items()}
        print(json.dumps({"devices": rows, "failures": failed, "cautions": cautions}, indent=2))
    else:
        for row in rows:
            print(f"{row['device']:<20} {row['memory'] / 2**30:8.1f} GiB  {row['model']} (priority {row['priority']})")
        for name, error in failures.items():
            absent = isinstance(error, UnavailableError)
            print(f"plugin {name} {'has no device' if absent else 'failed'}: {describe_failure(error)}")
        for name, caution in cautions.items():
            print(f"plugin {name} {caution}")
        if not rows:
            print("no devices; install a plugin such as timberframe-cpu")
    return 0 if rows and all(isinstance(e, UnavailableError) for e in failures.values()) else 1


def _ops(arguments: argparse.Namespace) -> int:
    if arguments.name:
        print(describe_op(arguments.name))
        return 0
    found = list(registry.all_ops())
    if arguments.json:
        print(json.dumps({op.name: op.doc for op in found}, indent=2))
    else:
        for op in found:
            print(f"{op.name:<32} {op.doc.splitlines()[0]}")
    return 0


def describe_op(name: str) -> str:
    """Signature, attrs, traits and doc of one op."""
    op = registry.get(name)
    lines = [f"{op.name}: {op.doc}", ""]
    for what, arguments in (("input", op.inputs), ("output", op.outputs)):
        for a in arguments:
            kind = a.dtype.name if a.dtype else a.type_list_attr or a.type_attr
            count = f"{a.number_attr} * " if a.number_attr else ""
            role = f" ({op.input_role(a)})" if what == "input" and op.input_role(a) != "data" else ""
            lines.append(f"  {what} {a.name}: {count}{kind}{role}")
    for attr in op.attrs.values():
        default = "" if attr.required else f" = {attr.default}"
        allowed = f" in {{{', '.join(map(str, attr.allowed))}}}" if attr.allowed else ""
        lines.append(f"  attr {attr.name}: {attr.kind}{allowed}{default}")
    lines += [f"  trait {name}" + ("" if value is True else f" = {_shown(name, value)}") for name, value in _traits(op)]
    return "\n".join(lines)


def _traits(op: OpDef) -> Iterator[tuple[str, Any]]:
    """Yields what the definition says of the op beyond its signature, as far as it is plain
    data and not the default.
    """
    for f in fields(op):
        value = getattr(op, f.name)
        if value and f.name not in _SHOWN and isinstance(value, (bool, str, tuple, Mapping)):
            yield f.name, value


def _shown(trait: str, value: Any) -> str:
    if trait != "defined_for":
        return repr(value)
    return " | ".join("; ".join(f"{attr}: {_dtypes(names)}" for attr, names in types.items()) for types in value)


def _dtypes(names: Collection[str]) -> str:
    """Returns names of dtypes; where most are among them, those that are not."""
    others = [name for name, dtype in BY_NAME.items() if name == dtype.name and not dtype.is_ref and name not in names]
    return ", ".join(names) if len(names) <= len(others) else f"all but {', '.join(others)}"


def _kernels(arguments: argparse.Namespace) -> int:
    loader.registry.load()
    found = [
        k
        for k in loader.registry.kernels.kernels(arguments.op)
        if not arguments.device or k.device == arguments.device.upper()
    ]
    if arguments.json:
        rows = [
            {
                "op": k.op,
                "device": k.device,
                "types": k.types,
                "priority": k.priority,
                "label": k.label,
                "covers": [part.op for part in k.covers],
                "fallback": k.fallback,
                "from": k.origin(),
            }
            for k in found
        ]
        print(json.dumps(rows, indent=2))
    else:
        for k in found:
            types = "; ".join(f"{n}: {', '.join(allowed)}" for n, allowed in k.types.items()) or "any dtype"
            mark = (f" priority {k.priority}" if k.priority else "") + (f" label {k.label}" if k.label else "")
            mark += f" covers {', '.join(part.op for part in k.covers)}" if k.covers else ""
            mark += " fallback" if k.fallback else ""
            print(f"{k.op:<28} {k.device:<10} {types}{mark}  [{k.origin()}]")
    if not found:
        failed = "; ".join(f"{n}: {describe_failure(e)}" for n, e in loader.registry.failures().items())
        print(f"no kernels match; plugins that failed: {failed or 'none'}", file=sys.stderr)
    return 0 if found else 1


def _doctor(_: argparse.Namespace) -> int:
    loader.registry.discover()
    if not loader.registry.plugins:
        print("no plugins are installed; install one such as timberframe-cpu")
        return 1
    verdicts = {name: _examine(name) for name in loader.registry.plugins}
    working = [name for name, verdict in verdicts.items() if verdict.startswith("works")]
    for name in working if len(working) > 1 else ():
        verdicts[name] = _examine(name, working)  # its kernels may be those of another
    for name, verdict in verdicts.items():
        plugin = loader.registry.plugins[name]
        print(f"{name} ({plugin.distribution} {plugin.version}): {verdict}")
    return int(not all(verdict.startswith(("works", "has no device")) for verdict in verdicts.values()))


def _examine(name: str, others: Sequence[str] = ()) -> str:
    """Tries one plugin, with others loaded or alone, in a child, which may crash or hang without harm."""
    command = [sys.executable, "-m", "timberframe", "probe", name, *others]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"hangs: no answer within {_PROBE_SECONDS} s"
    if done.returncode < 0:
        return f"crashes: the process died of signal {-done.returncode}"
    if done.returncode == _NO_DEVICE:
        return f"has no device: {done.stdout.strip()}"
    if done.returncode == _CAUTION:
        return f"works; it {done.stdout.strip()}"
    if done.returncode:
        return "fails: " + (done.stdout + done.stderr).strip()
    return "works"


def _probe(arguments: argparse.Namespace) -> int:
    """Loads plugins, makes their devices, copies an array to each of them and back, and prints the result."""
    import numpy as np

    found = devices_for(SessionConfig(plugins=[arguments.plugin, *arguments.others]))
    failure = loader.registry.failures().get(arguments.plugin)
    if isinstance(failure, UnavailableError):
        print(failure)
        return _NO_DEVICE
    if failure is not None:
        print(describe_failure(failure))
        return 1
    for device in found:
        sent = np.arange(1024, dtype=np.float32)
        if not np.array_equal(device.copy_out(device.copy_in(sent)), sent):
            print(f"{device.spec}: an array comes back changed")
            return 1
    caution = loader.registry.plugins[arguments.plugin].caution
    if caution:
        print(caution)
        return _CAUTION
    return 0


if __name__ == "__main__":
    sys.exit(main())
