"""The version of the contract between the core and plugins."""

CONTRACT = (2, 24)
"""The version of what plugins may use: all that `timberframe_sdk` exports, the hooks, and timberframe/kernel.h.

The second number grows with additions, the first with any other change; `sdk/tests/contract_snapshot.py` sees to it.
It has nothing to do with releases. A plugin says in `timberframe_contract` of its module which version it was written
for, and is checked when it is loaded.
"""
