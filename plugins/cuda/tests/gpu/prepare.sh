#!/usr/bin/env bash
# Makes what on_gpu.sh takes along to a machine with a GPU and no network, in .gpu/: wheels of this tree and of what that
# machine lacks, and the machine code of all kernels, so that nothing is compiled there. It needs no GPU.
#
# usage: plugins/cuda/tests/gpu/prepare.sh [--python 3.12] [--arch sm_90] [--nvrtc 13.0.88] [--built] [op ...]
#   --python  the machine's Python; --arch: its GPU, sm_90 for H100 and H200
#   --nvrtc   the version of NVRTC that CuPy finds there: cached machine code is used by the same major and minor version
#   --built   takes the wheels of `make release` that are in dist/
#   op ...    only the kernels of these ops
# Carry .gpu/ (git ignores it) and the tree; then run OUT=<folder> plugins/cuda/tests/on_gpu.sh there.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
python_version=3.12 arch=sm_90 nvrtc=13.0.88 built=
while [ $# -gt 0 ]; do
  case $1 in
    --python) python_version=$2; shift 2 ;;
    --arch) arch=$2; shift 2 ;;
    --nvrtc) nvrtc=$2; shift 2 ;;
    --built) built=yes; shift ;;
    --*) echo "unknown argument $1"; exit 2 ;;
    *) break ;;
  esac
done
python=$PWD/.venv/bin/python
rm -rf .gpu && mkdir -p .gpu/wheels

echo "== wheels"
[ -n "$built" ] || make release
cp dist/timberframe*-py3-none-any.whl dist/timberframe_cpu-*x86_64.whl .gpu/wheels/
"$python" -m pip download -q --no-deps --only-binary=:all: --implementation cp --python-version "$python_version" \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
  -d .gpu/wheels cffi pycparser google-crc32c platformdirs

echo "== machine code for $arch by NVRTC $nvrtc"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$python" -m pip install -q --no-deps --target "$made/site" "nvidia-cuda-nvrtc==$nvrtc"
PYTHONPATH=$made/site TIMBERFRAME_CACHE=$made/cache "$python" plugins/cuda/tests/gpu/precompile.py --arch "$arch" "$@"
tar cJf .gpu/cubins.tar.xz -C "$made/cache" cuda
du -sh .gpu .gpu/*
