"""Its synchronize() returns at once."""

from broken_device import hooks
from late_device import LateDevice


class Hasty(LateDevice):
    def synchronize(self):
        pass


hooks(globals(), Hasty("FORGETS_TO_SYNCHRONIZE"), [])
