"""Sessions of ONNX Runtime for one provider, and what it means when none can be made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as codes

from timberframe_core.errors import InvalidArgumentError, NoKernelError, ResourceExhaustedError
from timberframe_onnxruntime.model import ClusterModel
from timberframe_onnxruntime.providers import Provider
from timberframe_onnxruntime.settings import Settings

DEFAULT = "CPUExecutionProvider"
_LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
_FATAL_ONLY = 4
SWITCHES = {"session.set_denormal_as_zero": "0", "session.intra_op.allow_spinning": "0"}
"""Settings of every session, which reports show: subnormal numbers count, and threads do not wait busily."""


class NotTakenError(NoKernelError):
    """The provider does not take what it is asked to run; the message has its own words."""


def open_session(model: ClusterModel, proto: onnx.ModelProto, provider: Provider, settings: Settings) -> Any:
    """Returns a session that runs the model on the provider alone, or where fallback is allowed as far as it can.

    proto: the model, or one with some of its inputs as initializers. NotTakenError: the provider refuses it, or ONNX
    has no such nodes; the message names them as ONNX Runtime does, `Max(13)`.
    """
    refused = settings.fallback == "refused" and not provider.is_default
    text = proto.SerializeToString()
    try:
        session = _session(text, provider, settings, strict=refused)
    except codes.NotImplemented as e:
        raise NotTakenError(told(e)) from e
    except codes.InvalidGraph as e:
        raise (NotTakenError(f"ONNX has no such node: {told(e)}") if _is_invalid(proto) else e) from e
    except Exception as e:
        elsewhere = _elsewhere_if_allowed(text, provider, settings) if refused else ()
        if elsewhere:
            raise NotTakenError(f"{provider.name} does not take {_listed(elsewhere, proto)}: {told(e)}") from e
        raise
    elsewhere = assigned_elsewhere(session, provider)
    if refused and elsewhere:
        raise NotTakenError(
            f"{provider.name} does not take {_listed(elsewhere, proto)}: assigned to {elsewhere[0][1]}, although "
            "fallback is disabled"
        )
    return session


def compiled_model(text: bytes, provider: Provider, settings: Settings) -> bytes | None:
    """Returns a model of nodes `EPContext` with what a provider compiled; None where it makes none, or takes none back.

    text: of the model that it compiles.
    """
    if provider.is_default:
        return None
    options, own = _options(settings, strict=True), dict(settings.provider_options)
    if provider.device is None:
        options.add_provider(provider.name, own)
    else:
        options.add_provider_for_devices([provider.device], own)
    flags = onnxruntime.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED
    try:
        compiler = onnxruntime.ModelCompiler(options, text, embed_compiled_data_into_model=True, flags=flags)
        made: bytes = compiler.compile_to_bytes()
        open_compiled(made, provider, settings)
    except Exception:  # a session for the model itself says what is wrong with that, if anything is
        return None
    return made


def open_compiled(text: bytes, provider: Provider, settings: Settings) -> Any:
    """Returns a session for a model that the provider has compiled."""
    return _session(text, provider, settings, strict=not provider.is_default)


def _session(text: bytes, provider: Provider, settings: Settings, strict: bool) -> Any:
    options = _options(settings, strict)
    # What depends on constants alone would be computed by the default provider when the session is made.
    arguments: dict[str, Any] = {"disabled_optimizers": ["ConstantFolding"]} if settings.optimization == "all" else {}
    own = dict(settings.provider_options)
    if provider.device is None:
        arguments["providers"] = [(provider.name, own)]
    else:
        options.add_provider_for_devices([provider.device], own)
    return onnxruntime.InferenceSession(text, options, **arguments)


def _options(settings: Settings, strict: bool) -> Any:
    """Returns options of a session, without its provider. strict: no other provider may run a node."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = _LEVELS[settings.optimization]
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for name, value in SWITCHES.items():
        options.add_session_config_entry(name, value)
    if strict:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return options


def assigned_elsewhere(session: Any, provider: Provider) -> list[tuple[str, str, str]]:
    """Returns the nodes of a session that another provider runs: op, that provider, name of the node."""
    return [
        (node.op_type, part.ep_name, node.name)
        for part in session.get_provider_graph_assignment_info()
        if part.ep_name != provider.name
        for node in part.get_nodes()
    ]


def _elsewhere_if_allowed(text: bytes, provider: Provider, settings: Settings) -> Sequence[tuple[str, str, str]]:
    """Returns what another provider would run where fallback were allowed; nothing where even
    then there is no session.
    """
    plain = replace(settings, optimization="none")  # what rewrites nodes of other providers may fail by itself
    try:
        return assigned_elsewhere(_session(text, provider, plain, strict=False), provider)
    except Exception:  # whatever is wrong with the model, the first error says it
        return ()


def _listed(elsewhere: Sequence[tuple[str, str, str]], proto: onnx.ModelProto) -> str:
    """Nodes as ONNX Runtime names them: op and the opset of its definition, and how many where there are several."""
    counts = Counter(versioned(op, proto) for op, _, _ in elsewhere)
    return ", ".join(f"{name} x {n}" if n > 1 else name for name, n in counts.items())


def versioned(op: str, proto: onnx.ModelProto) -> str:
    """Returns an op with the opset that last changed it, as in Max(13)."""
    newest = max(o.version for o in proto.opset_import if o.domain == "")
    try:
        return f"{op}({onnx.defs.get_schema(op, newest).since_version})"
    except onnx.defs.SchemaError:
        return op


def _is_invalid(proto: onnx.ModelProto) -> bool:
    """Returns whether ONNX's own checks refuse the model, too."""
    try:
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return True
    return False


def told(e: Exception) -> str:
    """Returns ONNX Runtime's own words, on one line."""
    return " ".join(str(e).removeprefix("[ONNXRuntimeError] : ").split())


def error_of(e: Exception, spec: str) -> Exception | None:
    """Returns what an exception of ONNX Runtime is to users; None for one that says nothing of its kind."""
    if isinstance(e, codes.InvalidArgument):
        return InvalidArgumentError(f"device {spec}: {told(e)}")
    if isinstance(e, Exception) and "Failed to allocate memory" in str(e):
        return ResourceExhaustedError(f"device {spec}: {told(e)}")
    return None
