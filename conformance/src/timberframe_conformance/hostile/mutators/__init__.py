"""Mutators by file format: each changes one thing in place, chosen by the generator it is given.

A mutator that finds nothing to change raises `NothingToChangeError`, and another one is tried.
"""
