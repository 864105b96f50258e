#!/usr/bin/env bash
# How well the NEON kernels keep a board's multipliers busy, without the board: cross/mca.sh [CPU…]   (cortex-a72 cortex-a76)
# Compiles `models` for 64-bit ARM, cuts the inner loop out of each kernel and lets llvm-mca simulate it; beside it its arithmetic, loads and stores alone,
# which are the bounds that their issue sets. Prints a table for docs/results. Needs llvm-mca (Debian: llvm).
set -euo pipefail
case ${1:-} in -h | --help) sed -n 2,4p "$0"; exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
command -v llvm-mca >/dev/null || { echo "mca: error: no llvm-mca: apt-get install --no-install-recommends llvm" >&2; exit 1; }
target=aarch64-unknown-linux-gnu
# Without optimisation at link time: with it, the compiler would leave unrolling and vectors for then.
CARGO_PROFILE_RELEASE_LTO=off "$here/cargo.sh" $target rustc -q -p models --lib --release -- --emit asm -C symbol-mangling-version=v0 >&2
# shellcheck source=toolchain.sh
. "$here/toolchain.sh"
choose_toolchain $target 2>/dev/null
assembly=$(find "${CARGO_TARGET_DIR:-$root_dir/target}/$target/release/deps" -name 'models-*.s' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
[ -n "$assembly" ] || { echo "mca: error: cargo left no assembly of models" >&2; exit 1; }
python3 "$here/mca.py" "$assembly" "${@:-cortex-a72 cortex-a76}"
