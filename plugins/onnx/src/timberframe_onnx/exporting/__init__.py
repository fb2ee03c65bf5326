"""Graphs as ONNX models; it imports the core alone, so that devices may use it for their compilers."""

from timberframe_onnx.exporting.export import export_model as export_model
