#!/usr/bin/env bash
# Builds what goes onto a board: cross/build.sh [TARGET [CARGO ARGS…]]
#   cross/build.sh                                                             # edge-client for a 64-bit board, as it ships (profile `board`)
#   cross/build.sh aarch64-unknown-linux-gnu -p edge-client --no-default-features    # quickly, without tract, as CI does: for trying things
#   SPECTRA_GLIBC=2.28 cross/build.sh                                          # for boards with an older C library (needs cargo-zigbuild)
# The last line on stdout is the folder that the programs are in.
set -euo pipefail
case ${1:-} in -h | --help) sed -n 2,6p "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
target=${1:-aarch64-unknown-linux-gnu}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- -p edge-client --profile board
profile=debug
previous=
for arg in "$@"; do
  case $previous:$arg in
    *:--release | *:-r) profile=release ;;
    *:--profile=*) profile=${arg#--profile=} ;;
    --profile:*) profile=$arg ;;
  esac
  previous=$arg
done
[ "$profile" = dev ] && profile=debug
"$here/cargo.sh" "$target" build "$@"
# shellcheck source=toolchain.sh
. "$here/toolchain.sh"
choose_toolchain "$target" 2>/dev/null
printf '%s\n' "${CARGO_TARGET_DIR:-$root_dir/target}/$target/$profile"
