"""Settings of Sphinx for the site that `make docs` builds: README files and docs/, with the generated reference.

The source folder is that of the repository, so that links from a page to a README lead to the same place in the site.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Timberframe"
copyright = "Timberframe's authors, Apache-2.0"
extensions = ["myst_parser", "navigation", "reference", "sections", "tables"]

root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "docs/**.md",
    "*/README.md",
    "plugins/*/README.md",
    "examples/*/README.md",
]
exclude_patterns = [".*", "**/build", "**/dist", "**/src", "**/tests", "**/csrc", "docs/site"]

myst_heading_anchors = 4

highlight_language = "none"  # of blocks that name no language: what programs print

maximum_signature_line_length = 100
toc_object_entries = False  # each page would copy thousands of them into its navigation
add_module_names = False

html_theme = "furo"
html_title = "Timberframe"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_extra_path = ["extra/index.html"]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
