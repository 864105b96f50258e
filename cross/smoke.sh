#!/usr/bin/env bash
# Shows that programs built for a board start and work, under the emulator: cross/smoke.sh FOLDER [CLIENT]. FOLDER is the one that cross/build.sh
# printed; with an edge-client for this machine, both must compute the same to within BOUND.
set -euo pipefail
[ $# -eq 1 ] || [ $# -eq 2 ] || { sed -n 2,3p "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
client=$1/edge-client
[ -x "$client" ] || { printf 'smoke: error: no %s: run cross/build.sh first\n' "$client" >&2; exit 1; }

check() { # check WHAT PATTERN ARGS…: the program must succeed and its output match
  local what=$1 pattern=$2 out
  shift 2
  out=$("$here/run.sh" "$client" "$@") || { printf 'smoke: failed: %s\n' "$what" >&2; exit 1; }
  grep -Eq "$pattern" <<<"$out" || { printf 'smoke: failed: %s: no %s in:\n%s\n' "$what" "$pattern" "$out" >&2; exit 1; }
  printf 'smoke: ok: %s\n' "$what"
}

check "it starts" '^edge-client [0-9]' --version
check "it trains with NEON" '"isa" *: *"neon"' bench train --arch lenet5 --batch 8 --threads 1 --json

# The largest difference after ten steps, or of one answer: sums are taken in another order by kernels of another width.
readonly BOUND=1e-4
same() { # same KEY ARGS…: the figure that a bench computed, on the board's processor and on this one
  local key=$1 figures
  shift
  figures=$(for run in "$here/run.sh $client" "$native"; do $run "$@" | sed -En "s/.*\"$key\":([^,}]*).*/\1/p"; done)
  awk -v key="$key" -v bound=$BOUND '{ x[NR] = $1 } END { d = x[1] - x[2]; if (d < 0) d = -d
    printf "smoke: %s: %s on the board, %s here\n", key, x[1], x[2]; exit !(NR == 2 && d <= bound) }' <<<"$figures" ||
    { printf 'smoke: failed: %s differs by more than %s\n' "$key" $BOUND >&2; exit 1; }
}
if [ $# -eq 2 ]; then
  native=$2
  same loss bench train --arch lenet5 --batch 8 --steps 10 --threads 1 --json
  same confidence bench infer --arch lenet5 --batch 1 --steps 5 --engine native --json
fi

# The newest C library symbol decides on which systems the program starts.
if command -v objdump >/dev/null; then
  floor=$(objdump -T "$client" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
  printf 'smoke: needs %s, %s bytes\n' "${floor:-no C library}" "$(stat -c %s "$client")"
fi
