#!/usr/bin/env bash
# Judges and measures timberframe-cuda on a machine with an NVIDIA GPU, without a network, within ten minutes.
# gpu/prepare.sh makes before what it takes along; README.md says what each step proves.
#
# usage: OUT=<folder> plugins/cuda/tests/on_gpu.sh [--seconds 595] [--emulated]
#   OUT         gets log.txt, and kept.tar.xz, which is packed again after each step, so that a cut loses one step
#   --seconds   no step begins later, and steps are cut so that the last ends by then
#   --emulated  a rehearsal on the emulator: small shares and much time, and the steps that need a GPU are not run
#   PYTHON, CARRIED   the interpreter, python3 by default, and the folder that prepare.sh made, .gpu by default
# The status is 0 if no step failed. A step that is not run is counted and named, but is no failure: its program is not
# installed, no time is left, or it ends with status 77 because the machine does not let it work.
set -uo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
cd "$tests/../../.."
: "${OUT:?a folder for what is kept is required}"
seconds=595 emulated=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --emulated) emulated=yes; shift ;;
    *) echo "unknown argument $1"; exit 2 ;;
  esac
done

python=${PYTHON:-python3} carried=${CARRIED:-.gpu} work=$(mktemp -d)
kept=$work/kept
mkdir -p "$OUT" "$kept"
PATH=$PATH:/usr/local/cuda/bin # where CUDA's toolkit has its programs
export PYTHONUNBUFFERED=1 TIMBERFRAME_CACHE=$work/cache CUPY_CACHE_DIR=$work/cupy TIMBERFRAME_PLUGINS=cpu,cuda
jobs=12 core="--level core" speed="--scale 1" patience=1
shares=("--share 0/6" "--share 1/6" "--share 2/6" "--share 3/6" "--share 4/6" "--share 5/6") # so that a cut costs one
if [ -n "$emulated" ]; then
  export PYTHONPATH=$tests/emulator:$tests/emulator/driver EMULATED_STREAMS=${EMULATED_STREAMS:-late}
  export TIMBERFRAME_CACHE=${EMULATED_CACHE:-$TIMBERFRAME_CACHE}
  jobs=2 core="--level core --op Relu --suite forward" speed="--scale 0.01 --runs 2" patience=10
  shares=("--op Rsqrt --suite forward,guards" "--op Squeeze --suite forward,errors")
  seconds=$((seconds * patience))
fi
exec > >(tee "$OUT/log.txt") 2>&1
failed=() absent=()

conformance() { # the installed command may be of another environment
  "$python" -c "import sys; from timberframe_conformance.cli import main; sys.exit(main(sys.argv[1:]))" "$@"
}

keep() {
  { echo "failed: ${failed[*]:-none}"; echo "not run: ${absent[*]:-none}"; } > "$kept/steps.txt"
  tar cJf "$OUT/kept.tar.xz.new" -C "$work" kept && mv "$OUT/kept.tar.xz.new" "$OUT/kept.tar.xz"
}

not_run() { # name, reason
  echo "== $1: not run, $2"
  absent+=("$1")
}

# step <name> <most seconds> <command>: runs it, writes what it prints to <name>.txt, and packs everything.
step() {
  local name=$1 most=$2 left=$((seconds - SECONDS)) status
  shift 2
  if [ $left -lt 10 ]; then not_run "$name" "no time is left"; return 1; fi
  echo "== $name, from second $SECONDS"
  most=$((most * patience))
  timeout $((most < left ? most : left)) bash -c "$(declare -f conformance); python='$python'; $*" > "$kept/$name.txt" 2>&1
  status=$?
  tail -n 40 "$kept/$name.txt"
  if [ $status -eq 77 ]; then
    not_run "$name" "the machine does not let it work"
  elif [ $status -ne 0 ]; then echo "== $name: status $status"; failed+=("$name"); fi
  keep
  return $status
}

# needs <name> <program>: whether a program that a step needs is there.
needs() {
  command -v "$2" > /dev/null && return 0
  not_run "$1" "$2 is not installed"
  return 1
}

install() {
  if ls "$carried"/wheels/*.whl > /dev/null 2>&1; then
    step install 60 "$python -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $work/site $carried/wheels/*.whl" || return 1
    export PYTHONPATH=$work/site${PYTHONPATH:+:$PYTHONPATH}
  else
    not_run install "no wheels are carried: the installed packages are judged"
  fi
  if [ -e "$carried/cubins.tar.xz" ]; then
    step cubins 30 "mkdir -p $TIMBERFRAME_CACHE && tar xJf $carried/cubins.tar.xz -C $TIMBERFRAME_CACHE && ls $TIMBERFRAME_CACHE/cuda | wc -l"
  else
    not_run cubins "none are carried: kernels are compiled when they are used"
  fi
}

install || exit 1
needs driver nvidia-smi && step driver 20 "nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv"
step devices 60 "$python -m timberframe devices && $python -m timberframe devices --json > $kept/devices.json && grep -q /device:CUDA:0 $kept/devices.json" ||
  { echo "== no device: the rest is not run"; exit 1; }
step cupy 60 "$python $tests/gpu/versions.py $tests/emulator"
step smoke 100 "$python $tests/gpu/smoke.py" ||
  step smoke-blocking 60 "CUDA_LAUNCH_BLOCKING=1 $python $tests/gpu/smoke.py"
step core 80 "conformance run --device=cuda $core --jobs $jobs --json $kept/core.json.xz"
for k in "${!shares[@]}"; do
  step "all-$k" 60 "conformance run --device=cuda --jobs $jobs ${shares[k]} --json $kept/all-$k.json.xz"
done
for tool in racecheck memcheck; do # shared memory of each family with barriers; all accesses
  needs $tool compute-sanitizer && step $tool 40 "timeout 35 compute-sanitizer --tool $tool --target-processes all --print-limit 20 \
    --error-exitcode 9 $python -c 'import sys; from timberframe_conformance.cli import main; sys.exit(main(sys.argv[1:]))' \
    run --device=cuda --suite forward -k float32 --jobs 0 --timeout 30 \
    --op Softmax,Sum,Max,ArgMax,Cumsum,TopKV2,Transpose,Where,UnsortedSegmentSum,Conv2D
    status=\$?; ! grep -q 'Device not supported' $kept/$tool.txt || exit 77
    [ \$status -ne 124 ] || { echo 'cut: not all cases ran'; ! grep -qE '= (Error|Invalid|Race|Misaligned)' $kept/$tool.txt; status=\$?; }
    exit \$status"
done
step speed 120 "$python $tests/gpu/speed.py $speed --json $kept/speed.json"
needs profile ncu && step profile 30 "ncu --clock-control none --set basic --launch-count 8 --csv $python $tests/gpu/speed.py --only 'conv .*x14.*float32|add .*16|softmax' ||
  { ! grep -q 'Failed to initialize the profiler' $kept/profile.txt || exit 77; exit 1; }"
keep
echo "== end, at second $SECONDS: ${#failed[@]} steps failed (${failed[*]:-none}), ${#absent[@]} not run (${absent[*]:-none}); $OUT/kept.tar.xz has everything"
rm -rf "$work"
[ ${#failed[@]} -eq 0 ]
