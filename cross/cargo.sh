#!/usr/bin/env bash
# Any cargo command for another machine: cross/cargo.sh TARGET SUBCOMMAND [ARGS…]
#   cross/cargo.sh aarch64-unknown-linux-gnu test -p models     # the tests run under qemu, through run.sh
set -euo pipefail
[ $# -ge 2 ] || { sed -n 2,3p "$0" >&2; exit 2; }
# shellcheck source=toolchain.sh
. "$(dirname "$0")/toolchain.sh"
choose_toolchain "$1"
sub=$2
shift 2
cd "$root_dir"
case $sub:${SPECTRA_GLIBC:-} in
  build:?*) exec cargo-zigbuild zigbuild "${extra_args[@]}" --target "$target.$SPECTRA_GLIBC" "$@" ;;
  test:* | run:*) [ "$(uname -m)" = "$machine" ] || need_packages qemu-user-static ;;
esac
exec "$CARGO" "$sub" "${extra_args[@]}" --target "$target" "$@"
