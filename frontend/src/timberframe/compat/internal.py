"""TensorFlow's own modules, which programs import by their paths: where what they define is below `tf`."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from timberframe.compat import generated

_ROOT = ""  # `tf` itself

_PLACES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "python.framework",
        "constant_op dtypes importer random_seed sparse_tensor tensor_shape tensor_util",
        (_ROOT,),
    ),
    ("python.framework", "ops", (_ROOT, "timberframe.saving.collections", "timberframe.compat.scopes")),
    ("python.framework", "function", ("timberframe.compat.defun",)),
    ("python.framework", "smart_cond", ("timberframe.layers.switch",)),
    ("python.framework", "errors errors_impl", ("errors",)),
    ("python.framework", "graph_util graph_util_impl", ("graph_util",)),
    (
        "python.ops",
        "array_ops bitwise_ops check_ops clip_ops confusion_matrix control_flow_ops data_flow_ops functional_ops "
        "gen_array_ops gen_control_flow_ops gen_data_flow_ops gen_math_ops gen_random_ops gen_state_ops gradients "
        "gradients_impl histogram_ops init_ops io_ops linalg_ops logging_ops math_ops numerics parsing_ops "
        "partitioned_variables random_ops resource_variable_ops script_ops session_ops sparse_ops special_math_ops "
        "standard_ops state_ops string_ops template tensor_array_ops variable_scope",
        (_ROOT,),
    ),
    ("python.ops", "variables", (_ROOT, "timberframe.api.partitioned_variables")),
    ("python.ops", "candidate_sampling_ops ctc_ops embedding_ops gen_nn_ops nn nn_impl nn_ops rnn", ("nn", _ROOT)),
    ("python.ops", "clip_ops custom_gradient map_fn map_ops stateful_random_ops", (_ROOT,)),
    (
        "python.ops",
        "gen_ctc_ops gen_image_ops gen_io_ops gen_linalg_ops gen_logging_ops gen_lookup_ops gen_parsing_ops "
        "gen_resource_variable_ops gen_sparse_ops gen_spectral_ops gen_string_ops gen_training_ops",
        ("raw_ops",),
    ),
    ("python.ops", "gen_batch_ops gen_dataset_ops gen_functional_ops gen_nccl_ops gen_set_ops gen_user_ops",
     ("raw_ops",)),
    ("python.ops", "gradient_checker", ("test",)),
    ("python.ops", "manip_ops", ("manip",)),
    ("python.ops.linalg",
     "linalg linalg_impl linear_operator linear_operator_composition linear_operator_diag "
     "linear_operator_full_matrix linear_operator_identity linear_operator_lower_triangular",
     ("linalg", _ROOT)),
    ("python.ops", "sets sets_impl", ("sets",)),
    ("python.ops", "signal spectral_ops", ("signal", "spectral")),
    ("python.ops.signal", "dct_ops fft_ops mel_ops mfcc_ops reconstruction_ops shape_ops spectral_ops window_ops",
     ("signal",)),
    (
        "python.ops.distributions",
        "bernoulli beta categorical dirichlet dirichlet_multinomial distribution distributions exponential gamma "
        "kullback_leibler laplace multinomial normal student_t uniform",
        ("distributions",),
    ),
    ("python.ops", "stateless_random_ops", ("random", _ROOT)),
    ("python.ops", "rnn_cell rnn_cell_impl", ("nn.rnn_cell",)),
    ("python.ops", "image_ops image_ops_impl", ("image",)),
    ("python.ops", "lookup_ops", (_ROOT, "lookup")),
    ("python.ops", "metrics metrics_impl", ("metrics",)),
    ("python.ops.losses", "losses losses_impl util", ("losses",)),
    ("python.platform", "app", ("app",)),
    ("python.profiler", "model_analyzer option_builder tfprof_logger", ("profiler",)),
    ("core.profiler", "tfprof_log_pb2 tfprof_output_pb2", ("profiler",)),
    ("python.platform", "flags", ("flags",)),
    ("python.platform", "gfile", ("gfile",)),
    ("python.platform", "googletest test", ("test",)),
    ("python.platform", "resource_loader", ("resource_loader",)),
    ("python.framework", "test_util", ("test",)),
    ("python.framework", "graph_io meta_graph", ("train",)),
    ("python.framework", "indexed_slices load_library tensor_spec", (_ROOT,)),
    ("python.framework", "versions", ("version",)),
    ("python.feature_column", "feature_column feature_column_lib feature_column_v2", ("feature_column",)),
    ("python.platform", "tf_logging", ("logging",)),
    ("python.lib.io", "file_io", ("gfile",)),
    ("python.lib.io", "tf_record", ("python_io",)),
    ("python.util", "compat", ("compat",)),
    ("python.util", "tf_decorator", ("timberframe.compat.decorators",)),
    ("python.util", "tf_inspect", ("timberframe.compat.signatures",)),
    ("python.util", "deprecation tf_export", ("timberframe.compat.deprecation",)),
    ("python.util", "nest", ("contrib.framework.nest",)),
    ("python.client", "session", (_ROOT,)),
    ("python.eager", "context", (_ROOT,)),
    ("python.eager", "backprop function", ("contrib.eager", _ROOT)),
    ("python.data.experimental.ops",
     "batching grouping interleave_ops iterator_ops prefetching_ops readers resampling scan_ops shuffle_ops unique",
     ("data.experimental",)),
    ("python.layers", "utils", ("timberframe.layers.switch",)),
    ("python.data.ops", "dataset_ops iterator_ops readers", ("data",)),
    ("python.estimator", "estimator export inputs model_fn run_config training", ("estimator",)),
    ("python.layers", "base convolutional core layers normalization pooling", ("layers",)),
    ("python.saved_model", "builder loader saved_model signature_constants tag_constants utils", ("saved_model",)),
    ("python.saved_model", "signature_def_utils simple_save", ("saved_model",)),
    ("python.summary", "summary", ("summary",)),
    ("python.summary.writer", "writer writer_cache", ("summary",)),
    (
        "python.training",
        "adadelta adagrad adam basic_session_run_hooks checkpoint_management checkpoint_utils coordinator ftrl "
        "device_setter gradient_descent input learning_rate_decay momentum monitored_session optimizer "
        "proximal_adagrad proximal_gradient_descent adagrad_da checkpoint_state_pb2 evaluation sync_replicas_optimizer "
        "queue_runner queue_runner_impl rmsprop saver server_lib session_manager session_run_hook supervisor "
        "training training_util",
        ("train",),
    ),
    ("python.training", "summary_io", ("train", "summary")),
    ("python.training", "slot_creator", ("timberframe.train.slots",)),
    ("python.training", "warm_starting_util", ("train",)),
    ("python.training", "moving_averages", ("timberframe.train.moving_averages",)),
    ("python", "pywrap_tensorflow", ("train",)),
    ("core.example", "example_pb2 feature_pb2", ("train",)),
    (
        "core.framework",
        "attr_value_pb2 graph_pb2 node_def_pb2 summary_pb2 tensor_pb2 tensor_shape_pb2 types_pb2 variable_pb2",
        (_ROOT, "summary"),
    ),
    ("core.protobuf", "config_pb2 meta_graph_pb2 rewriter_config_pb2 saver_pb2", (_ROOT, "train")),
    ("core.util", "event_pb2", (_ROOT, "summary")),
    ("contrib.eager.python", "tfe", ("contrib.eager",)),
    ("contrib.crf.python.ops", "crf", ("contrib.crf",)),
    ("contrib.data.python.ops",
     "batching enumerate_ops error_ops get_single_element grouping interleave_ops iterator_ops prefetching_ops readers "
     "resampling scan_ops shuffle_ops sliding threadpool unique writers",
     ("contrib.data", "data.experimental", "data")),
    ("contrib.distributions.python.ops",
     "bernoulli beta categorical dirichlet dirichlet_multinomial distribution exponential gamma kullback_leibler "
     "laplace multinomial mvn_diag mvn_tril normal student_t uniform",
     ("contrib.distributions",)),
    ("contrib.framework.python", "framework ops", ("contrib.framework",)),
    ("contrib.framework.python.framework", "checkpoint_utils tensor_util", ("contrib.framework",)),
    ("contrib.legacy_seq2seq.python.ops", "seq2seq", ("contrib.legacy_seq2seq",)),
    ("contrib.lookup", "lookup_ops", ("contrib.lookup", _ROOT)),
    ("contrib.losses.python.losses", "loss_ops", ("contrib.losses",)),
    ("contrib.nn.python.ops", "cross_entropy sampling_ops", ("contrib.nn",)),
    ("contrib.opt.python.training",
     "adamax external_optimizer lazy_adam_optimizer moving_average_optimizer nadam_optimizer powersign addsign "
     "variable_clipping_optimizer weight_decay_optimizers",
     ("contrib.opt",)),
    ("contrib.signal.python.ops",
     "mel_ops mfcc_ops reconstruction_ops shape_ops spectral_ops window_ops", ("signal",)),
    ("contrib.tfprof.python.tools.tfprof", "model_analyzer", ("contrib.tfprof.model_analyzer",)),
    ("contrib.tfprof.python.tools.tfprof", "tfprof_logger", ("contrib.tfprof.tfprof_logger",)),
    ("contrib.training.python.training",
     "bucket_ops device_setter evaluation hparam resample sampling_ops training", ("contrib.training",)),
    ("contrib.layers.python", "layers ops", ("contrib.layers",)),
    ("contrib.learn.python", "learn", ("contrib.learn", "estimator")),
    ("contrib.learn.python.learn", "metric_spec monitored_session run_config", ("contrib.learn", "train")),
    ("contrib.learn.python.learn.datasets", "base mnist",
     ("timberframe.contrib.learn_datasets", "timberframe.examples.tutorials.mnist.input_data")),
    ("contrib.learn.python.learn", "datasets", ("timberframe.contrib.learn_datasets",)),
    ("contrib.metrics.python.ops", "metric_ops set_ops", ("contrib.metrics", "sets")),
    ("contrib.staging.python", "staging", ("contrib.staging",)),
    ("contrib.framework.python.ops", "arg_scope ops variables", ("contrib.framework",)),
    ("contrib.layers.python.layers",
     "embedding_ops encoders initializers layers normalization optimizers regularizers summaries",
     ("contrib.layers",)),
    ("contrib.layers.python.layers", "utils", ("contrib.layers.utils",)),
    ("contrib.rnn.python.ops",
     "core_rnn core_rnn_cell core_rnn_cell_impl fused_rnn_cell gru_ops lstm_ops rnn rnn_cell",
     ("contrib.rnn", "nn.rnn_cell", "nn")),
    ("contrib.seq2seq.python.ops",
     "attention_wrapper basic_decoder beam_search_decoder beam_search_ops decoder helper loss", ("contrib.seq2seq",)),
    ("contrib.slim.python", "slim", ("contrib.slim",)),
    ("contrib.slim.python.slim", "data", ("contrib.slim",)),
)  # fmt: skip
"""Packages, their modules, and the namespaces below `tf`, or modules of ours, that have the modules' names."""

MODULES: Mapping[str, tuple[str, ...]] = {
    f"{package}.{module}": namespaces for package, modules, namespaces in _PLACES for module in modules.split()
}
"""By module, without the leading `tensorflow.`: the namespaces in which its names are looked up, in this order."""

_RENAMED: Mapping[str, str] = {
    "contrib.tensorboard.plugins.projector.projector_config_pb2": "contrib.tensorboard.plugins.projector",
    "python.framework.tensor_shape.matrix": "timberframe.compat.functions.matrix",
    "python.framework.tensor_shape.scalar": "timberframe.compat.functions.scalar",
    "python.framework.tensor_shape.unknown_shape": "timberframe.compat.functions.unknown_shape",
    "python.framework.tensor_shape.vector": "timberframe.compat.functions.vector",
    "python.ops.control_flow_ops.with_dependencies": "timberframe.compat.functions.with_dependencies",
    "python.ops.data_flow_ops.StagingArea": "contrib.staging.StagingArea",
    "python.ops.rnn_cell_impl._Linear": "timberframe.compat.functions.Linear",
    "python.ops.rnn_cell_impl._concat": "timberframe.compat.functions.concat_sizes",
    "python.ops.rnn_cell_impl._like_rnncell": "timberframe.compat.functions.like_rnn_cell",
    "python.pywrap_tensorflow.EventsWriter": "timberframe.compat.functions.EventsWriter",
    "python.training.summary_io.SummaryWriter": "summary.FileWriter",
    "python.training.summary_io.SummaryWriterCache": "summary.FileWriterCache",
    "python.training.monitored_session._HookedSession": "timberframe.train.wrapped_sessions.HookedSession",
    "python.training.monitored_session._WrappedSession": "timberframe.train.wrapped_sessions.WrappedSession",
    "python.training.monitored_session._CoordinatedSession": "timberframe.train.wrapped_sessions.CoordinatedSession",
    "python.training.monitored_session._RecoverableSession": "timberframe.train.wrapped_sessions.RecoverableSession",
    "python.client.session.BaseSession": "Session",
    "python.framework.ops.internal_convert_to_tensor": "convert_to_tensor",
    "python.framework.smart_cond.smart_cond": "timberframe.layers.switch.smart_cond",
    "python.framework.smart_cond.smart_constant_value": "timberframe.layers.switch.known_bool",
    "python.framework.tensor_util.MakeNdarray": "make_ndarray",
    "python.framework.tensor_util.constant_value": "get_static_value",
    "python.framework.test_util.TensorFlowTestCase": "test.TestCase",
    "python.layers.utils.constant_value": "timberframe.layers.switch.known_bool",
    "python.lib.io.file_io.FileIO": "gfile.GFile",
    "python.lib.io.file_io.copy": "gfile.Copy",
    "python.lib.io.file_io.create_dir": "gfile.MkDir",
    "python.lib.io.file_io.delete_file": "gfile.Remove",
    "python.lib.io.file_io.delete_recursively": "gfile.DeleteRecursively",
    "python.lib.io.file_io.file_exists": "gfile.Exists",
    "python.lib.io.file_io.get_matching_files": "gfile.Glob",
    "python.lib.io.file_io.is_directory": "gfile.IsDirectory",
    "python.lib.io.file_io.list_directory": "gfile.ListDirectory",
    "python.lib.io.file_io.recursive_create_dir": "gfile.MakeDirs",
    "python.lib.io.file_io.rename": "gfile.Rename",
    "python.lib.io.file_io.stat": "gfile.Stat",
    "python.lib.io.file_io.walk": "gfile.Walk",
    "python.ops.custom_gradient.custom_gradient": "custom_gradient",
    "python.ops.init_ops.Initializer": "timberframe.api.initializers.Initializer",
    "python.ops.lookup_ops.index_table_from_file": "contrib.lookup.index_table_from_file",
    "python.ops.lookup_ops.index_table_from_tensor": "contrib.lookup.index_table_from_tensor",
    "python.ops.lookup_ops.index_to_string_table_from_file": "contrib.lookup.index_to_string_table_from_file",
    "python.ops.lookup_ops.index_to_string_table_from_tensor": "contrib.lookup.index_to_string_table_from_tensor",
    "python.ops.map_fn.map_fn": "map_fn",
    "python.ops.metrics_impl._streaming_confusion_matrix": "metrics.confusion.streaming_confusion_matrix",
    "python.ops.rnn_cell_impl._zero_state_tensors": "timberframe.recurrent.base.zero_states",
    "python.ops.variable_scope._pure_variable_scope": "timberframe.compat.scopes.pure_variable_scope",
}
"""Names of TensorFlow's own modules, and what they are below `tf`, or in modules of ours."""

_PACKAGES = {".".join(parts[:end]) for parts in (name.split(".") for name in MODULES) for end in range(1, len(parts))}

_PYTHONS: Mapping[str, ModuleType] = {"python.util.tf_contextlib": contextlib}
"""Modules that are Python's own, under another name."""


class InternalModule(ModuleType):
    """A module or package of TensorFlow's own; its names are those of public namespaces."""

    def __init__(self, name: str, find: Callable[[str], Any]) -> None:
        super().__init__(name)
        self._find = find

    def __getattr__(self, name: str) -> Any:
        renamed = _RENAMED.get(f"{self.__name__}.{name}")
        if renamed is not None:
            place, _, last = renamed.rpartition(".")
            return getattr(self._namespace(place), last) if place else self._find(renamed)
        package, _, own = self.__name__.rpartition(".")
        if name in (own, own.removesuffix("_impl")):  # the function that the module is named for
            with contextlib.suppress(AttributeError):
                return self.of_namespaces(name)
        for inside in (self.__name__, package):  # modules have imported others of their package
            inner = internal_module(f"{inside}.{name}", self._find)
            if inner is not None:
                return inner
        with contextlib.suppress(AttributeError):
            return self.of_namespaces(name)
        if self.__name__.startswith("python.ops.") and self.__name__.endswith("_ops") and not name.startswith("__"):
            with contextlib.suppress(AttributeError):
                return generated.find(name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted(
            {name for namespace in MODULES.get(self.__name__, ()) for name in dir(self._namespace(namespace))}
        )

    def of_namespaces(self, name: str) -> Any:
        """Returns the name's value in the first of the namespaces that has it."""
        for namespace in MODULES.get(self.__name__, ()):
            with contextlib.suppress(AttributeError):
                return getattr(self._namespace(namespace), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def _namespace(self, name: str) -> Any:
        return importlib.import_module(name) if name.startswith("timberframe.") else self._find(name)


class FunctionModule(InternalModule):
    """A module that has a function of its own name, which it may be called as: programs mean either by that name."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.of_namespaces(self.__name__.rpartition(".")[2])(*arguments, **named)


def internal_module(name: str, find: Callable[[str], Any]) -> ModuleType | None:
    """Returns the module of this name below `tf`, None where there is none; find: gives a namespace by its name."""
    if name in _PYTHONS:
        return _PYTHONS[name]
    if name not in MODULES and name not in _PACKAGES:
        return None
    module = InternalModule(name, find)
    try:
        own = module.of_namespaces(name.rpartition(".")[2])
    except AttributeError:
        return module
    return module if isinstance(own, ModuleType) else FunctionModule(name, find)
