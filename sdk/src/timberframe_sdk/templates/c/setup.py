"""What pyproject.toml has no words for: the extension module that build_native.py describes."""

from setuptools import setup

setup(cffi_modules=["build_native.py:builder"])
