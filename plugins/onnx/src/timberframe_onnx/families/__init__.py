"""Translators of ops, one module for each family."""
