"""Waits for ever when it is imported."""

import threading

threading.Event().wait()
