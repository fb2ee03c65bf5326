"""Devices with kernels in OpenCL C or CUDA C++: a base class, and kernels in one language that is both."""

from timberframe_accelerator.device import DTYPES as DTYPES
from timberframe_accelerator.device import AcceleratorDevice as AcceleratorDevice
from timberframe_accelerator.device import AcceleratorExecutable as AcceleratorExecutable
from timberframe_accelerator.device import DeviceTensor as DeviceTensor
from timberframe_accelerator.device import Table as Table
from timberframe_accelerator.device import header_folders as header_folders
from timberframe_accelerator.launches import GROUP as GROUP
from timberframe_accelerator.launches import Function as Function
from timberframe_accelerator.launches import Limits as Limits
from timberframe_accelerator.launches import Source as Source
from timberframe_accelerator.launches import failing as failing
from timberframe_accelerator.launches import index_name as index_name
from timberframe_accelerator.launches import index_type as index_type
from timberframe_accelerator.launches import spread as spread
from timberframe_accelerator.library import Multiplication as Multiplication
from timberframe_accelerator.unsupported import UNSUPPORTED_OPS as UNSUPPORTED_OPS
