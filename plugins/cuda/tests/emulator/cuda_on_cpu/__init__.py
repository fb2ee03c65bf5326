"""CUDA on the CPU, for tests: sources in CUDA C++ compiled as C++, and work-items as fibers."""
