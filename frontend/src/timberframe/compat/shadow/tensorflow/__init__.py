"""`import tensorflow` in the processes that a program starts: its folder is on their path (see compat.programs)."""

import importlib
import sys

from timberframe.compat.programs import answer_imports

del sys.modules[__name__]
answer_imports()
importlib.import_module(__name__)  # now answered by timberframe, in the place of this module
