"""The true results that devices are compared with."""
