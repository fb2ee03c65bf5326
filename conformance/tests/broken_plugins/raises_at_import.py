"""Raises when it is imported."""

raise OSError("libacme.so: cannot open shared object file")
