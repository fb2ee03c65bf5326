"""Devices with kernels in OpenCL C or CUDA C++: a base class, and kernels in one language that is both."""

from timberframe_sdk.accelerator.device import DTYPES as DTYPES
from timberframe_sdk.accelerator.device import GROUP as GROUP
from timberframe_sdk.accelerator.device import AcceleratorDevice as AcceleratorDevice
from timberframe_sdk.accelerator.device import AcceleratorExecutable as AcceleratorExecutable
from timberframe_sdk.accelerator.device import DeviceTensor as DeviceTensor
from timberframe_sdk.accelerator.device import Function as Function
from timberframe_sdk.accelerator.device import Limits as Limits
from timberframe_sdk.accelerator.device import Source as Source
from timberframe_sdk.accelerator.device import Table as Table
from timberframe_sdk.accelerator.device import failing as failing
from timberframe_sdk.accelerator.device import header_folder as header_folder
from timberframe_sdk.accelerator.device import index_name as index_name
from timberframe_sdk.accelerator.device import index_type as index_type
from timberframe_sdk.accelerator.device import spread as spread
from timberframe_sdk.accelerator.leaves import LEAVES as LEAVES
