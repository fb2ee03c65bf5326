"""`tf.contrib.slim`: the layers of `tf.contrib.layers` under the names of slim, and its argument scopes."""

from timberframe.lazy import lazy_names as _lazy_names
from timberframe_contrib.contrib.framework import VariableDeviceChooser as VariableDeviceChooser
from timberframe_contrib.contrib.framework import add_arg_scope as add_arg_scope
from timberframe_contrib.contrib.framework import add_model_variable as add_model_variable
from timberframe_contrib.contrib.framework import arg_scope as arg_scope
from timberframe_contrib.contrib.framework import arg_scoped_arguments as arg_scoped_arguments
from timberframe_contrib.contrib.framework import assign_from_checkpoint as assign_from_checkpoint
from timberframe_contrib.contrib.framework import assign_from_checkpoint_fn as assign_from_checkpoint_fn
from timberframe_contrib.contrib.framework import assign_from_values as assign_from_values
from timberframe_contrib.contrib.framework import assign_from_values_fn as assign_from_values_fn
from timberframe_contrib.contrib.framework import create_global_step as create_global_step
from timberframe_contrib.contrib.framework import filter_variables as filter_variables
from timberframe_contrib.contrib.framework import get_global_step as get_global_step
from timberframe_contrib.contrib.framework import get_local_variables as get_local_variables
from timberframe_contrib.contrib.framework import get_model_variables as get_model_variables
from timberframe_contrib.contrib.framework import get_or_create_global_step as get_or_create_global_step
from timberframe_contrib.contrib.framework import get_trainable_variables as get_trainable_variables
from timberframe_contrib.contrib.framework import get_unique_variable as get_unique_variable
from timberframe_contrib.contrib.framework import get_variable_full_name as get_variable_full_name
from timberframe_contrib.contrib.framework import get_variables as get_variables
from timberframe_contrib.contrib.framework import get_variables_by_name as get_variables_by_name
from timberframe_contrib.contrib.framework import get_variables_by_suffix as get_variables_by_suffix
from timberframe_contrib.contrib.framework import get_variables_to_restore as get_variables_to_restore
from timberframe_contrib.contrib.framework import global_variable as global_variable
from timberframe_contrib.contrib.framework import has_arg_scope as has_arg_scope
from timberframe_contrib.contrib.framework import local_variable as local_variable
from timberframe_contrib.contrib.framework import model_variable as model_variable
from timberframe_contrib.contrib.framework import variable as variable
from timberframe_contrib.contrib.layers import *  # noqa: F403 - the same names
from timberframe_contrib.contrib.layers import utils as utils
from timberframe_contrib.contrib.layers import weights as _weights

initializers = regularizers = _weights
_MODULES = ("evaluation", "layers", "learning", "losses", "metrics", "model_analyzer", "queues")
_DATA = (
    "data_decoder", "data_provider", "dataset", "dataset_data_provider", "parallel_reader", "prefetch_queue",
    "tfexample_decoder",
)  # fmt: skip
__getattr__ = _lazy_names(
    __name__,
    {
        **{name: f"timberframe_contrib.contrib.{name}" for name in _MODULES},
        **{name: f"timberframe_contrib.contrib.slim_data.{name}" for name in _DATA},
        "nets": "timberframe_contrib.contrib.slim_nets",
        "summaries": "timberframe_contrib.contrib.slim_summaries",
    },
)
