"""ONNX models as graphs of Timberframe: loaded, run on any device, placed into graphs; and graphs as ONNX models.

What is asked for is imported then: `export` needs the core alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timberframe_onnx.errors import InvalidModelError as InvalidModelError
    from timberframe_onnx.errors import UnsupportedModelError as UnsupportedModelError
    from timberframe_onnx.exporting import export_model as export_model
    from timberframe_onnx.model import Imported as Imported
    from timberframe_onnx.model import Model as Model
    from timberframe_onnx.model import import_model as import_model
    from timberframe_onnx.model import load as load
    from timberframe_onnx.writing import export as export

_MODULES = {
    "errors": ("InvalidModelError", "UnsupportedModelError"),
    "exporting": ("export_model",),
    "model": ("Imported", "Model", "import_model", "load"),
    "writing": ("export",),
}


def __getattr__(name: str) -> Any:
    """Returns a public name, and imports the module that has it."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
