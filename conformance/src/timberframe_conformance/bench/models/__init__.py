"""Whole networks: built, compared with other systems, and reported."""
