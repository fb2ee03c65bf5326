"""Estimators whose model functions are here: linear models and networks of feature columns."""
