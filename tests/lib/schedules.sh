# For scripts that run cases of a test program under several schedules; sourced behind lib.sh.
work=$BUILD/tests/$self
rm -rf "$work"
mkdir -p "$work"
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
. "$SRC/tests/lib/seeds.sh"

# schedules GPU PROGRAM CASE...: each case is clean
schedules() {
    on=$1 program=$2
    shift 2
    for case; do
        HEWN_SIM_SEED=$first_seed timeout 900 "$BUILD/hewn" check --gpu "$on" --schedules $seeds "$program" --case "$case" >"$work/out" 2>&1
        status "$seeds schedules of case $case on $on" 0 $?
    done
}

# sheets GPU PROGRAM CASE...: each case agrees with the worksheet that its kernels declare
sheets() {
    on=$1 program=$2
    shift 2
    for case; do
        timeout 120 "$BUILD/hewn" worksheet --gpu "$on" "$program" --case "$case" >"$work/out" 2>&1
        want "case $case on $on: declared and seen" '^declared and seen agree' "$work/out"
    done
}
