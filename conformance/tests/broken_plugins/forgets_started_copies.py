"""Its copies to the host that are only started do not wait for the work that makes their tensor."""

import numpy as np
from broken_device import hooks
from late_device import LateDevice

from timberframe_core.plugin.waiting import Deferred


class Hasty(LateDevice):
    def copy_out(self, a):
        return super().start_copy_out(a).result()

    def start_copy_out(self, a):
        def read():
            found = self.memory.get(a.address)
            return np.zeros(a.shape, a.dtype) if found is None else found.copy()

        return Deferred(read)


hooks(globals(), Hasty("FORGETS_STARTED_COPIES"), [])
