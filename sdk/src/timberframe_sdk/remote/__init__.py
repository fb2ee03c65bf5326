"""Devices of other processes, whatever carries the calls: the client's side, the worker's side, errors between them."""
