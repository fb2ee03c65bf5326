"""Eager execution: when it is on, tapes that record for gradients, and functions that become graphs."""
