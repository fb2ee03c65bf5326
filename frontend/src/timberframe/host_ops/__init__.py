"""What the executor does for the front end's ops: Python functions, queues, tables.

They join by the registry that is open to any package (`timberframe_sdk.host_op`). Importing the package registers them.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
