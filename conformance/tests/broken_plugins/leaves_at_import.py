"""Ends the process when it is imported, as some drivers do without a licence."""

import os

os._exit(7)
