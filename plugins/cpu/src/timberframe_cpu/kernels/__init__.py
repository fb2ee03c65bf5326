"""Kernel declarations, one module for each family in csrc/."""
