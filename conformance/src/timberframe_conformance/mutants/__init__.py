"""Known bugs: kernels that are wrong in one way each, with which the suite proves that it would notice."""
