"""What may go wrong in files, by format: each mutator changes one thing in place, chosen by the generator it is given.

A mutator that finds nothing to change raises `NothingToChangeError`, and another one is tried.
"""
