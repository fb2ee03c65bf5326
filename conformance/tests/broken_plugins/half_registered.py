"""Has kernels, the last of which is for an op that nobody defines."""

from broken_device import BrokenDevice, hooks, kernels

import timberframe_sdk as sdk

_last = sdk.KernelDef("Sqare", "HALF_REGISTERED", lambda node: print)

hooks(globals(), BrokenDevice("HALF_REGISTERED"), [*kernels("HALF_REGISTERED"), _last])
