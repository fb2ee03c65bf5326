"""`tf.saved_model`: models as folders of graph, signatures and variables."""

from __future__ import annotations

import sys
import types

from timberframe.boundary import guard
from timberframe.saved_model.builder import Builder, simple_save
from timberframe.saved_model.constants import (
    ASSETS_DIRECTORY,
    ASSETS_KEY,
    CLASSIFY_INPUTS,
    CLASSIFY_METHOD_NAME,
    CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES,
    DEBUG_DIRECTORY,
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    GPU,
    LEGACY_INIT_OP_KEY,
    MAIN_OP_KEY,
    PREDICT_INPUTS,
    PREDICT_METHOD_NAME,
    PREDICT_OUTPUTS,
    REGRESS_INPUTS,
    REGRESS_METHOD_NAME,
    REGRESS_OUTPUTS,
    SAVED_MODEL_FILENAME_PB,
    SAVED_MODEL_FILENAME_PBTXT,
    SAVED_MODEL_SCHEMA_VERSION,
    SERVING,
    TPU,
    TRAINING,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from timberframe.saved_model.loader import contains_saved_model, load
from timberframe.saved_model.signatures import (
    build_signature_def,
    build_tensor_info,
    classification_signature_def,
    get_tensor_from_tensor_info,
    predict_signature_def,
    regression_signature_def,
)

__all__ = [
    "ASSETS_DIRECTORY",
    "ASSETS_KEY",
    "CLASSIFY_INPUTS",
    "CLASSIFY_METHOD_NAME",
    "CLASSIFY_OUTPUT_CLASSES",
    "CLASSIFY_OUTPUT_SCORES",
    "DEBUG_DIRECTORY",
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "GPU",
    "LEGACY_INIT_OP_KEY",
    "MAIN_OP_KEY",
    "PREDICT_INPUTS",
    "PREDICT_METHOD_NAME",
    "PREDICT_OUTPUTS",
    "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME",
    "REGRESS_OUTPUTS",
    "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION",
    "SERVING",
    "TPU",
    "TRAINING",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
    "Builder",
    "build_signature_def",
    "build_tensor_info",
    "builder",
    "classification_signature_def",
    "contains_saved_model",
    "get_tensor_from_tensor_info",
    "load",
    "loader",
    "maybe_saved_model_directory",
    "predict_signature_def",
    "regression_signature_def",
    "signature_constants",
    "signature_def_utils",
    "simple_save",
    "tag_constants",
    "utils",
]  # fmt: skip

maybe_saved_model_directory = contains_saved_model

# The same under the names of TensorFlow 1's submodules.
builder = types.SimpleNamespace(SavedModelBuilder=Builder)
loader = types.SimpleNamespace(
    load=load, maybe_saved_model_directory=contains_saved_model, contains_saved_model=contains_saved_model
)
tag_constants = types.SimpleNamespace(SERVING=SERVING, TRAINING=TRAINING, GPU=GPU, TPU=TPU)
signature_constants = types.SimpleNamespace(
    DEFAULT_SERVING_SIGNATURE_DEF_KEY=DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    PREDICT_METHOD_NAME=PREDICT_METHOD_NAME,
    PREDICT_INPUTS=PREDICT_INPUTS,
    PREDICT_OUTPUTS=PREDICT_OUTPUTS,
    CLASSIFY_INPUTS=CLASSIFY_INPUTS,
    CLASSIFY_METHOD_NAME=CLASSIFY_METHOD_NAME,
    CLASSIFY_OUTPUT_CLASSES=CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES=CLASSIFY_OUTPUT_SCORES,
    REGRESS_INPUTS=REGRESS_INPUTS,
    REGRESS_METHOD_NAME=REGRESS_METHOD_NAME,
    REGRESS_OUTPUTS=REGRESS_OUTPUTS,
)
signature_def_utils = types.SimpleNamespace(
    build_signature_def=build_signature_def,
    classification_signature_def=classification_signature_def,
    predict_signature_def=predict_signature_def,
    regression_signature_def=regression_signature_def,
)
utils = types.SimpleNamespace(
    build_tensor_info=build_tensor_info, get_tensor_from_tensor_info=get_tensor_from_tensor_info
)

guard([sys.modules[__name__]])  # here, since `import timberframe` does not load this package
