"""ONNX models as graphs of Timberframe: loaded, run on any device, placed into graphs."""

from timberframe_onnx.errors import InvalidModelError as InvalidModelError
from timberframe_onnx.errors import UnsupportedModelError as UnsupportedModelError
from timberframe_onnx.model import Imported as Imported
from timberframe_onnx.model import Model as Model
from timberframe_onnx.model import import_model as import_model
from timberframe_onnx.model import load as load
