"""Whole networks: built, measured beside other systems, and reported."""
