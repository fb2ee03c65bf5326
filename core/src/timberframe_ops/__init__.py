"""TensorFlow's ops that the frame need not know, in TensorFlow's own families, and what serves them alone.

They join as the ops of a vendor do: `plugin.py` is what the entry point of the group `timberframe.ops` names, and
`index.json` lists them. Nothing in the frame imports this package.
"""

from timberframe_core.library import add_library_folder

add_library_folder(__file__)
