#!/usr/bin/env bash
# Shows that programs built for a board start and work, under the emulator: cross/smoke.sh FOLDER (the one that cross/build.sh printed).
set -euo pipefail
[ $# -eq 1 ] || { sed -n 2p "$0" >&2; exit 2; }
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

# The newest C library symbol decides on which systems the program starts.
if command -v objdump >/dev/null; then
  floor=$(objdump -T "$client" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
  printf 'smoke: needs %s, %s bytes\n' "${floor:-no C library}" "$(stat -c %s "$client")"
fi
