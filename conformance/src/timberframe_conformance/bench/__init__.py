"""Measures a device against peers, all in one run."""
