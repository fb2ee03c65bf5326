"""The polynomials of the float64 kernels: see fit_polynomials."""

from fits import common_fits

FITS = common_fits("f64", {"exp": 10, "sinh": 6, "log": 18, "sin": 5, "cos": 5, "asin": 11, "atan": 9})
