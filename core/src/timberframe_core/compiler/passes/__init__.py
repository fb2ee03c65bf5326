"""Rewrites of programs and clusters as data: see `timberframe_core.plugin.passes`."""
