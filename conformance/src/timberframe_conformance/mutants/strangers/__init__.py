"""Mutants as vendors' trackers tell of them, planted into devices with memory and a queue of their own.

Each names the report that it follows, and the device that it is planted into. The level at which the suite must notice
it follows from the op, dtypes and attrs that it concerns, see `rule`.
"""
