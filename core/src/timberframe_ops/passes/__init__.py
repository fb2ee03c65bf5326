"""Rewrites that serve these ops alone."""
