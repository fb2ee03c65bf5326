"""What datasets and iterators do while a session runs.

A Pipeline is what a dataset op makes; it never changes. An iterator of a session goes through one by a tree of Cursors.
"""
