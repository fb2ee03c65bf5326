"""Keeps a crash or a hang in one case from reaching the others."""
