"""``python -m timberframe_onnx info|run|compare|convert|export FILE``: see `--help` of each."""

import sys

from timberframe_onnx.tool import main

sys.exit(main())
