"""Ops on numbers that integers of few bits stand for, with the range that the integers cover: quantization."""
