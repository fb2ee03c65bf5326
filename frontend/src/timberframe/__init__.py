"""Timberframe: TensorFlow's graphs, built and run in Python, on devices that are packages of their own.

``import timberframe as tf``: the names and argument orders are TensorFlow 1's.
"""
# ruff: noqa: F403 - the families' modules list their public names in __all__; see timberframe.api

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from timberframe import host_ops as _host_ops  # noqa: F401 - registers what the executor does
from timberframe.annex import NAMESPACES as _NAMESPACES
from timberframe.annex import PACKAGE as _ANNEX
from timberframe.annex import AnnexModules as _AnnexModules
from timberframe.api import ROOT as _ROOT
from timberframe.api import offered as _offered
from timberframe.boundary import guard as _guard
from timberframe.lazy import lazy_names as _lazy_names
from timberframe_core import __version__ as __version__
from timberframe_core import errors as errors
from timberframe_core import logging as logging
from timberframe_core import nest as nest
from timberframe_core.errors import OpError as OpError
from timberframe_core.graph.defaults import get_default_session as get_default_session
from timberframe_core.library import add_library_folder as _add_library_folder
from timberframe_core.runtime.device_array import DeviceArray as DeviceArray
from timberframe_core.runtime.session import InteractiveSession as InteractiveSession
from timberframe_core.runtime.session import Session as Session

if _TYPE_CHECKING:
    from timberframe import app as app
    from timberframe import bitwise as bitwise
    from timberframe import compat as compat
    from timberframe import config as config
    from timberframe import data as data
    from timberframe import debugging as debugging
    from timberframe import dtypes as dtypes
    from timberframe import examples as examples
    from timberframe import flags as flags
    from timberframe import gfile as gfile
    from timberframe import graph_util as graph_util
    from timberframe import image as image
    from timberframe import initializers as initializers
    from timberframe import io as io
    from timberframe import layers as layers
    from timberframe import linalg as linalg
    from timberframe import lookup as lookup
    from timberframe import losses as losses
    from timberframe import manip as manip
    from timberframe import math as math
    from timberframe import metrics as metrics
    from timberframe import nn as nn
    from timberframe import profiler as profiler
    from timberframe import python as python
    from timberframe import python_io as python_io
    from timberframe import quantization as quantization
    from timberframe import queue as queue
    from timberframe import random as random
    from timberframe import raw_ops as raw_ops
    from timberframe import resource_loader as resource_loader
    from timberframe import saved_model as saved_model
    from timberframe import sets as sets
    from timberframe import signal as signal
    from timberframe import sparse as sparse
    from timberframe import spectral as spectral
    from timberframe import strings as strings
    from timberframe import summary as summary
    from timberframe import test as test
    from timberframe import train as train
    from timberframe import version as version
    from timberframe.api.accumulators import *
    from timberframe.api.arithmetic import *
    from timberframe.api.arrays import *
    from timberframe.api.assertions import *
    from timberframe.api.clock import *
    from timberframe.api.comparison import *
    from timberframe.api.composites import *
    from timberframe.api.constants import *
    from timberframe.api.contraction import *
    from timberframe.api.control_flow import *
    from timberframe.api.conversions import *
    from timberframe.api.decompositions import *
    from timberframe.api.diagonal import *
    from timberframe.api.examples import *
    from timberframe.api.framework import *
    from timberframe.api.functional import *
    from timberframe.api.gradients import *
    from timberframe.api.histogram import *
    from timberframe.api.image_windows import *
    from timberframe.api.indexing import *
    from timberframe.api.initializers import *
    from timberframe.api.linalg import *
    from timberframe.api.lookup import *
    from timberframe.api.messages import *
    from timberframe.api.partitioners import *
    from timberframe.api.pictures import *
    from timberframe.api.printing import *
    from timberframe.api.python_functions import *
    from timberframe.api.quantization import *
    from timberframe.api.queues import *
    from timberframe.api.random import *
    from timberframe.api.random_initializers import *
    from timberframe.api.random_seeds import *
    from timberframe.api.readers import *
    from timberframe.api.reduction import *
    from timberframe.api.search import *
    from timberframe.api.selection import *
    from timberframe.api.sequence_examples import *
    from timberframe.api.serialization import *
    from timberframe.api.settings import *
    from timberframe.api.slicing import *
    from timberframe.api.sparse import *
    from timberframe.api.sparse_math import *
    from timberframe.api.special import *
    from timberframe.api.string_parts import *
    from timberframe.api.strings import *
    from timberframe.api.templates import *
    from timberframe.api.tensor_array import *
    from timberframe.api.type_assertions import *
    from timberframe.api.types import *
    from timberframe.api.unary import *
    from timberframe.api.variable_collections import *
    from timberframe.api.variable_creators import *
    from timberframe.api.variable_functions import *
    from timberframe.api.variable_scope import *
    from timberframe.api.variables import *
    from timberframe.api.while_loops import *
    from timberframe.eager.function import function as function
    from timberframe.eager.tape import GradientTape as GradientTape
    from timberframe.eager.tensor_spec import TensorSpec as TensorSpec
    from timberframe.metrics.confusion import confusion_matrix as confusion_matrix
    from timberframe.signal.fourier import fft as fft
    from timberframe.signal.fourier import fft2d as fft2d
    from timberframe.signal.fourier import fft3d as fft3d
    from timberframe.signal.fourier import ifft as ifft
    from timberframe.signal.fourier import ifft2d as ifft2d
    from timberframe.signal.fourier import ifft3d as ifft3d
    from timberframe_contrib import contrib as contrib
    from timberframe_contrib import distributions as distributions
    from timberframe_contrib import estimator as estimator
    from timberframe_contrib import feature_column as feature_column
else:
    # What takes long to import and many programs do without.
    _MODULES = (
        "app", "bitwise", "compat", "config", "data", "debugging", "dtypes", "examples", "flags", "gfile",
        "graph_util", "image", "initializers", "io", "layers", "linalg", "lookup", "losses", "manip", "math",
        "metrics", "nn", "profiler", "python", "python_io", "quantization", "queue", "random", "raw_ops",
        "resource_loader", "saved_model", "sets", "signal", "sparse", "spectral", "strings", "summary", "test",
        "train", "version",
    )  # fmt: skip
    _EAGER = {
        "GradientTape": "timberframe.eager.tape:GradientTape",
        "TensorSpec": "timberframe.eager.tensor_spec:TensorSpec",
        "function": "timberframe.eager.function:function",
    }
    _LATER = {
        **_offered(_ROOT),
        **_EAGER,
        **{name: f"timberframe.{name}" for name in _MODULES},
        **{name: f"{_ANNEX}.{name}" for name in _NAMESPACES},
        "confusion_matrix": "timberframe.metrics.confusion:confusion_matrix",
        **{name: f"timberframe.signal:{name}" for name in ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d")},
    }
    __getattr__ = _lazy_names(__name__, _LATER)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})


__git_version__ = f"v{__version__}"
VERSION, GIT_VERSION = __version__, __git_version__
_sys.meta_path.insert(0, _AnnexModules())  # before what would load a file of the package a second time
_add_library_folder(__file__)
_guard([_sys.modules[__name__], nest])
