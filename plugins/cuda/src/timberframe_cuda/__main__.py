"""`python -m timberframe_cuda precompile`: fills the cache of compiled kernels without a GPU."""

import sys

from timberframe_cuda.precompile import main

sys.exit(main())
