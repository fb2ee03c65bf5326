"""Eager execution: operations run when they are made, through the plans and kernels that sessions use."""
