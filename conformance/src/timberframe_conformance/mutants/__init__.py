"""Known bugs: kernels that are each wrong in one way, to prove that the suite detects them."""
