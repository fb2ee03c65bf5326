"""Is written for another version of the contract."""

from broken_device import BrokenDevice, hooks, kernels

timberframe_contract = (99, 0)

hooks(globals(), BrokenDevice("WRONG_CONTRACT"), kernels("WRONG_CONTRACT"))
