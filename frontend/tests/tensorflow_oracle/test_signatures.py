"""Calls of TensorFlow 1.15's functions, classes and methods mean the same here: parameters, their order and defaults.

Compared are the names of the installed TensorFlow's compat.v1 that are here, too, but for what it has added since 1.15.
A parameter that ours has beyond TensorFlow's is optional, and comes last, so that no call notices it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from enum import Enum
from types import ModuleType
from typing import Any

from timberframe.compat.programs import resolve

Parameters = Sequence[inspect.Parameter]

ADDED = {
    "": {"fn_output_signature", "layout", "jit_compile", "reduce_retracing", "experimental_implements"},
    "data.": {
        "name", "num_parallel_calls", "deterministic", "synchronous", "use_unbounded_threadpool", "output_signature",
        "stop_on_empty_dataset", "rerandomize_each_iteration", "log_warning", "exclude_cols", "encoding",
    },
    "feature_column.": {"use_safe_embedding_lookup"},
    "function": {"experimental_attributes", "experimental_compile", "experimental_follow_type_hints"},
    "image.": {"return_index_map", "sorted_input", "canonicalized_coordinates", "tile_size"},
    "image.adjust_jpeg_quality": {"dct_method"},
    "lin_space": {"axis"},
    "lookup.Static": {"experimental_is_anonymous"},
    "nn.": {"allow_fast_lookup"},
    "saved_model.": {"defaults", "experimental_image_format", "experimental_image_writer_options"},
    "sparse.cross": {"separator"},
    "sparse.segment_": {"sparse_gradient"},
    "test.assert_equal_graph_def": {"hash_table_shared_name"},
    "train.": {"save_graph_def", "skip_gradients_aggregation", "use_own_namescope_for_non_slot_vars"},
    "train.Checkpoint": {
        "check_interval", "checkpoint_interval", "init_fn", "last_checkpoint_step", "options", "step_counter",
    },
    "Graph.as_graph_def": {"use_pybind11_proto"},
}  # fmt: skip
"""Parameters that TensorFlow got after 1.15, by the beginnings of names."""

DIFFERENT = {
    "DType": "dtypes are not made by programs",
    "Graph.create_op": "makes an operation of an OpDef; programs make those of TensorFlow's by tf.raw_ops",
    "Variable.SaveSliceInfo": "made by variables of a partitioner, not by programs",
    "Variable": "every variable is a resource, so that use_resource=True is what None means",
    "as_dtype": "its parameter is called value, as plugins know it",
    "custom_gradient": "f may be left out since 2.3",
    "data.Dataset": "made by the functions that are named from_*",
    "data.Dataset.from_generator": "output_types may be left out since 2.4",
    "data.Dataset.interleave": "cycle_length and block_length have the defaults of 1.15",
    "data.Dataset.shuffle": "reshuffle_each_iteration has the default of 1.15",
    "data.Dataset.zip": "takes datasets one by one since 2.12",
    "data.experimental.make_batched_features_dataset": "reader has the default of 1.15",
    "function": "experimental_relax_shapes is None by default since 2.11",
    "nest.assert_same_structure": "composite tensors are leaves, which is what expand_composites=False means",
    "nest.flatten": "as nest.assert_same_structure",
    "nest.pack_sequence_as": "as nest.assert_same_structure",
    "nn.sigmoid_cross_entropy_with_logits": "has 1.15's first parameter, _sentinel",
    "nn.softmax_cross_entropy_with_logits": "as nn.sigmoid_cross_entropy_with_logits",
    "nn.sparse_softmax_cross_entropy_with_logits": "as nn.sigmoid_cross_entropy_with_logits",
    "numpy_function": "func, inp and Tout may be left out since 2.11",
    "manip.scatter_nd": "bad_indices_policy came before name in 2.19",
    "shape": "out_type is None by default since 2.13, and means int32 in graphs of TensorFlow 1",
    "size": "as shape",
    "sparse.split": "keyword_required marks where positions end; both refuse to have it given",
    "tensor_scatter_add": "as manip.scatter_nd",
    "tensor_scatter_nd_max": "as manip.scatter_nd",
    "tensor_scatter_nd_min": "as manip.scatter_nd",
    "tensor_scatter_nd_sub": "as manip.scatter_nd",
    "test.TestCase.assertProtoEquals": "its second parameter is message in 1.15",
    "test.TestCase.session": "use_gpu is False by default in 1.15",
    "test.TestCase.cached_session": "as test.TestCase.session",
    "test.TestCase.assertShapeEqual": "takes an array and a tensor, as in 1.15",
}
"""Names whose signatures differ, with the reason."""


def public_names(module: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields what compat.v1 offers that is no module, by name; Keras, and what is left to it, cannot be imported."""
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        full = f"{path}.{name}" if path else name
        if full in ("compat", "keras", "layers", "nn.rnn_cell", "raw_ops"):
            continue
        value = getattr(module, name)
        if not isinstance(value, ModuleType):
            yield full, value
        elif value.__name__.startswith("tensorflow._api"):
            yield from public_names(value, full)


def parameters(value: Any) -> Parameters | None:
    """Returns the parameters of a function, or of a class's constructor; None where they are not known."""
    if isinstance(value, type):
        if issubclass(value, Exception) or value.__init__ is object.__init__:
            return None
        value = value.__init__
    try:
        found = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    return found[1:] if found and found[0].name == "self" else found


def is_message(value: Any) -> bool:
    """Returns whether this is one of protobuf's classes, or takes its place."""
    return isinstance(value, type) and (hasattr(value, "DESCRIPTOR") or hasattr(value, "SerializeToString"))


def pairs(tf: Any) -> Iterator[tuple[str, Parameters, Parameters]]:
    """Yields the names that both have, once each, with their parameters: theirs and ours."""
    seen = set()
    for name, value in public_names(tf):
        try:
            ours = resolve(name)
        except AttributeError:
            continue
        if is_message(value):
            continue
        found = [(name, value, ours)]
        if isinstance(value, type) and isinstance(ours, type):
            methods = [m for m in dir(value) if not m.startswith("_") and callable(getattr(ours, m, None))]
            found += [(f"{name}.{m}", getattr(value, m), getattr(ours, m)) for m in methods]
        for full, their, own in found:
            if (id(their), id(own)) in seen:  # of another name, or inherited
                continue
            seen.add((id(their), id(own)))
            a, b = parameters(their), parameters(own)
            if a is not None and b is not None:
                yield full, a, b


def default(parameter: inspect.Parameter) -> Any:
    """Returns a default in a form that both sides share: lists as tuples, dtypes and other objects by their names."""
    value = parameter.default
    if isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "name", None) or getattr(value, "__name__", None) or type(value).__name__


def without_added(name: str, theirs: Parameters) -> Parameters:
    added = set().union(*(own for start, own in ADDED.items() if name.startswith(start)))
    return [p for p in theirs if p.name not in added]


def differences(name: str, theirs: Parameters, ours: Parameters) -> list[str]:
    """Returns what a call of TensorFlow's would notice."""
    kinds = {p.kind for p in ours}
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds:
        return []
    own = {p.name: p for p in ours}
    order = [p.name for p in ours if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    found = []
    for i, p in enumerate(without_added(name, theirs)):
        if p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if p.name not in own:
            found.append(f"has no {p.name}")
        elif p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and order[i : i + 1] != [p.name]:
            found.append(f"has {p.name} elsewhere")
        elif p.default is not p.empty and default(p) != default(own[p.name]):
            found.append(f"has {own[p.name].default!r} as default of {p.name}, not {p.default!r}")
    needed = [p.name for p in ours if p.default is p.empty and p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return found + [f"requires {n}" for n in needed if n not in {p.name for p in theirs}]


def test_signatures_are_tensorflows_but_for_those_with_a_reason(tensorflow: Any) -> None:
    compared = list(pairs(tensorflow))
    found = {name: what for name, theirs, ours in compared if (what := differences(name, theirs, ours))}
    assert len(compared) > 1000
    assert {name: what for name, what in found.items() if name not in DIFFERENT} == {}
    assert sorted(set(DIFFERENT) - set(found)) == []
