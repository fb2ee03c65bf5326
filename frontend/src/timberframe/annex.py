"""Namespaces of `tf` that are in a package of their own, `timberframe_contrib`, and are imported when asked for.

Users know their modules by names such as `timberframe.contrib.slim`, by which pickles name functions, too.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

PACKAGE = "timberframe_contrib"
NAMESPACES = ("contrib", "distributions", "estimator", "feature_column")


class AnnexModules:
    """Answers `import timberframe.contrib`, and the like, with the modules of the package.

    It is a finder and a loader without the base classes of `importlib.abc`, which take long to import.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Returns a spec for modules of the namespaces."""
        root, *inside = fullname.split(".")
        if root != "timberframe" or not inside or inside[0] not in NAMESPACES:
            return None
        return ModuleSpec(fullname, cast("Loader", self))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Returns None: the module that stands for another is taken out at once."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Puts the package's own module in place of the one that is being imported."""
        sys.modules[module.__name__] = import_module(PACKAGE + module.__name__.removeprefix("timberframe"))
