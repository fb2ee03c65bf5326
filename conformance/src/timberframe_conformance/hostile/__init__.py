"""Hostile files: damaged graphs, checkpoints and saved models must give right answers or OpErrors, nothing else."""
