#!/usr/bin/env bash
# Runs a program built for a board on this machine: cross/run.sh PROGRAM [ARGS…]. Cargo calls it as the runner of `cross/cargo.sh … test`.
# The emulated processor is a Cortex-A53 (Raspberry Pi 3): what runs on it runs on every 64-bit board. SPECTRA_CPU chooses another, SPECTRA_QEMU
# another emulator: libonnxruntime needs qemu 10, Debian 12's 7.2 crashes in it.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 2,4p "$0" >&2; exit 2; }
program=$1
[ -r "$program" ] || { printf 'cross: error: no program %s\n' "$program" >&2; exit 1; }
# e_machine, byte 18 of the ELF header: 183 is AArch64, 40 is ARM.
case $(od -An -tu1 -j18 -N1 "$program" | tr -d ' ') in
  183) arch=aarch64 sysroot=/usr/aarch64-linux-gnu cpu=cortex-a53 ;;
  40) arch=arm sysroot=/usr/arm-linux-gnueabihf cpu=cortex-a7 ;;
  *) printf 'cross: error: %s was not built for ARM\n' "$program" >&2; exit 1 ;;
esac
case $(uname -m) in "$arch" | armv7l) exec "$@" ;; esac
for qemu in ${SPECTRA_QEMU:-qemu-$arch-static qemu-$arch}; do
  command -v "$qemu" >/dev/null && exec "$qemu" -cpu "${SPECTRA_CPU:-$cpu}" -L "$sysroot" "$@"
done
printf 'cross: error: no qemu for %s: apt-get install qemu-user-static\n' "$arch" >&2
exit 1
