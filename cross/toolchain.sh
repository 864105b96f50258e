# shellcheck shell=bash
# Sourced by the scripts beside it: `choose_toolchain TARGET` finds or makes a Rust toolchain that builds for TARGET, says on stderr
# which one it chose and why, and exports CARGO, RUSTC, RUSTDOC, CARGO_TARGET_DIR, the linker, the C compiler and the runner.
#
# The choices, in order:
#   native   this machine is TARGET.
#   rustup   the `rustc` on PATH has TARGET's standard library (`rustup target add TARGET`).
#   debian   Debian's own newer Rust (packages rustc-web, …), unpacked below .cross/, never installed: nothing on the machine changes but for
#            a C cross compiler and an emulator from apt. For machines where rustup cannot fetch a target.
# Over either, SPECTRA_GLIBC=2.28 links with cargo-zigbuild for that glibc, for boards older than this machine (JetPack 5 has 2.31).

cross_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root_dir=$(dirname "$cross_dir")
prefix=${SPECTRA_CROSS_PREFIX:-$root_dir/.cross}

say() { printf 'cross: %s\n' "$*" >&2; }
die() {
  printf 'cross: error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf 'cross:   %s\n' "$line" >&2; done
  exit 1
}

# What each target needs: the GNU triple of its C tools, Debian's name of its architecture, the kernel's name of its machine.
describe_target() {
  case $1 in
    aarch64-unknown-linux-gnu) triple=aarch64-linux-gnu deb_arch=arm64 machine=aarch64 ;;
    armv7-unknown-linux-gnueabihf) triple=arm-linux-gnueabihf deb_arch=armhf machine=armv7l ;;
    *) die "unknown target '$1'" "known: aarch64-unknown-linux-gnu (64-bit Raspberry Pi OS, Jetson), armv7-unknown-linux-gnueabihf (32-bit Raspberry Pi OS)" ;;
  esac
  c_packages=("gcc-$triple" "libc6-dev-$deb_arch-cross")
}

# Installs Debian packages unless all are there. Without root or apt it says what to type.
need_packages() {
  local missing=() p
  for p in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "these Debian packages (or your system's own) are needed: ${missing[*]}"
  [ "$(id -u)" = 0 ] || die "some packages are missing" "sudo apt-get install --no-install-recommends ${missing[*]}"
  say "installing ${missing[*]}"
  apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
    { apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null; } ||
    die "apt-get could not install ${missing[*]}"
}

has_std() { # has_std RUSTC TARGET
  local dir
  dir=$("$1" --print target-libdir --target "$2" 2>/dev/null) && compgen -G "$dir/libstd-*.rlib" >/dev/null
}

# apt with lists and cache of its own, so that asking for a second architecture changes nothing on the machine. Only arm64 is asked for:
# for others the standard library is built from source.
private_apt() {
  local architectures=(-o APT::Architectures::="$host_deb_arch")
  [ "$deb_arch" != arm64 ] || architectures+=(-o APT::Architectures::=arm64)
  "$1" -o Dir::State::Lists="$prefix/apt/lists" -o Dir::Cache="$prefix/apt/cache" \
    "${architectures[@]}" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "${@:2}"
}

candidate() { private_apt apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p'; }

# Unpacks Debian's Rust for this machine and the target's standard library (or, where Debian's is too old, the library's source).
unpack_debian_rust() {
  local wanted stamp=$prefix/debian-rust.$target.stamp
  host_deb_arch=$(dpkg --print-architecture 2>/dev/null) || die "no rustup target and no dpkg: '$target' cannot be built here" \
    "rustup target add $target" "and install $triple-gcc"
  debrust=$prefix/debian-rust
  mkdir -p "$prefix/apt/lists/partial" "$prefix/apt/cache/archives/partial"
  exec 9>"$prefix/lock"
  flock 9
  if [ -e "$stamp" ] && [ -x "$debrust/usr/bin/rustc" ]; then
    exec 9>&-
    return
  fi

  say "unpacking Debian's Rust for $target below $prefix (some 450 MB; once)"
  private_apt apt-get update -q >/dev/null 2>"$prefix/apt/update.log" || {
    cat "$prefix/apt/update.log" >&2
    die "apt-get update failed (an index that is being replaced? try again later)"
  }
  wanted=$(candidate rustc-web)
  if [ -z "$wanted" ] || [ "$wanted" = "(none)" ]; then
    die "no rustup target for $target, and this system has no package rustc-web (Debian 12 with its security suite has)" \
      "rustup target add $target"
  fi
  local need
  need=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root_dir/Cargo.toml" | head -n 1)
  dpkg --compare-versions "$wanted" ge "$need" || die "Debian offers Rust $wanted, the workspace needs $need" "rustup target add $target"

  local debs=(rustc-web cargo-web libstd-rust-web-dev "libstd-rust-web-$(printf %s "$wanted" | cut -d. -f1,2)")
  if [ "$deb_arch" = arm64 ]; then
    local theirs
    theirs=$(candidate libstd-rust-web-dev:arm64)
    [ "$theirs" = "$wanted" ] || die "Debian's Rust is $wanted for $host_deb_arch but '$theirs' for arm64 (a security upload under way: try again in some hours)"
    debs+=(libstd-rust-web-dev:arm64)
  else
    debs+=(rust-web-src)
  fi
  rm -rf "$prefix/debs" && mkdir -p "$prefix/debs" "$debrust"
  (cd "$prefix/debs" && private_apt apt-get download -q "${debs[@]}" >/dev/null) || die "apt-get could not download ${debs[*]}"
  local f
  for f in "$prefix"/debs/*.deb; do
    case $f in
      */rust-web-src_*) dpkg-deb --fsys-tarfile "$f" | tar -x -C "$debrust" --wildcards './usr/lib/rustlib/src*' './usr/src/rustc-*/library*' ;;
      *) dpkg-deb -x "$f" "$debrust" ;;
    esac || die "could not unpack $f"
  done
  rm -rf "$prefix/debs" "$prefix/apt/cache"
  # Another target's library of another version is of no use any more.
  for f in "$prefix"/debian-rust.*.stamp; do
    [ ! -e "$f" ] || [ "$(cat "$f")" = "$wanted" ] || rm -f "$f"
  done
  printf '%s\n' "$wanted" >"$stamp"
  exec 9>&-
}

choose_toolchain() {
  target=$1
  describe_target "$target"
  extra_args=()
  local upper=${target//-/_}
  upper=${upper^^}

  if [ "$(uname -m)" = "$machine" ]; then
    say "native: this machine is $target"
    export CARGO=${CARGO:-cargo}
    return
  fi
  if has_std "${RUSTC:-rustc}" "$target"; then
    say "rustup: ${RUSTC:-rustc} has the standard library of $target"
    export CARGO=${CARGO:-cargo}
  else
    say "debian: the rustc on PATH has no standard library of $target, so Debian's Rust it is"
    unpack_debian_rust
    local llvm
    llvm=$(objdump -p "$debrust"/usr/lib/*/librustc_driver-*.so 2>/dev/null | sed -n 's/.*NEEDED *libLLVM.so.\([0-9]*\).*/libllvm\1/p' | head -n 1)
    need_packages "${llvm:-libllvm22}" libgit2-1.5 libssh2-1
    # Debian's cargo by its full path and RUSTC beside it: rustup's shims would be found first on PATH.
    CARGO=$debrust/usr/bin/cargo RUSTC=$debrust/usr/bin/rustc RUSTDOC=$debrust/usr/bin/rustdoc
    LD_LIBRARY_PATH=$(dirname "$(compgen -G "$debrust/usr/lib/*/librustc_driver-*.so")")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    # Never the folder of another compiler: each would rebuild the other's build scripts.
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$prefix/target}
    export CARGO RUSTC RUSTDOC LD_LIBRARY_PATH CARGO_TARGET_DIR
    "$CARGO" --version >/dev/null || die "Debian's cargo does not start" "remove $prefix and try again"
    say "$("$RUSTC" --version) of Debian, artifacts in $CARGO_TARGET_DIR"
    if ! has_std "$RUSTC" "$target"; then
      say "Debian has no standard library of this version for $target: it is built from source (-Zbuild-std)"
      export RUSTC_BOOTSTRAP=1
      extra_args=("-Zbuild-std=std,panic_unwind")
    fi
  fi

  if [ -n "${SPECTRA_GLIBC:-}" ]; then
    command -v cargo-zigbuild >/dev/null || die "SPECTRA_GLIBC=$SPECTRA_GLIBC needs cargo-zigbuild" "pip install cargo-zigbuild ziglang"
    say "zig: linking for glibc $SPECTRA_GLIBC"
  else
    need_packages "${c_packages[@]}"
    export "CARGO_TARGET_${upper}_LINKER=$triple-gcc" "CC_${target//-/_}=$triple-gcc" "AR_${target//-/_}=$triple-ar"
  fi
  export "CARGO_TARGET_${upper}_RUNNER=$cross_dir/run.sh"
}
