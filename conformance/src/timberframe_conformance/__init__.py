"""The suite that judges Timberframe devices: it tries every op of the registry on a device and says what holds."""

__version__ = "0.1.0"
SUITE_VERSION = __version__
