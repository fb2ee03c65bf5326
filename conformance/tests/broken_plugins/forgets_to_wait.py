"""Its copies to the host do not wait for the work that makes their tensor."""

import numpy as np
from broken_device import hooks
from late_device import LateDevice


class Hasty(LateDevice):
    def copy_out(self, a):
        found = self.memory.get(a.address)
        return np.zeros(a.shape, a.dtype) if found is None else found.copy()


hooks(globals(), Hasty("FORGETS_TO_WAIT"), [])
