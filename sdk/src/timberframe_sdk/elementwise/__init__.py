"""Elementwise ops for devices that compile: the table of their sources, and chains of nodes that run as one."""
