//! Which instruction set to use.
use super::portable::Portable;
use super::table::Table;

/// The highest instruction set that a user allows; also the name of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsaCap {
    /// Plain Rust, four lanes, on any CPU.
    Generic,
    /// x86-64's base line, four lanes.
    Sse2,
    /// x86-64 with AVX2 and FMA, eight lanes.
    Avx2,
    /// x86-64 with AVX-512 F, VL, BW and DQ, sixteen lanes.
    Avx512,
    /// 64-bit ARM, four lanes.
    Neon,
}

/// A name that is no instruction set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set `{0}`: expected generic, sse2, avx2, avx512 or neon")]
pub struct UnknownIsa(pub String);

impl std::str::FromStr for IsaCap {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        let all = [IsaCap::Generic, IsaCap::Sse2, IsaCap::Avx2, IsaCap::Avx512, IsaCap::Neon];
        all.into_iter().find(|cap| cap.name() == name).ok_or_else(|| UnknownIsa(name.to_owned()))
    }
}

impl std::fmt::Display for IsaCap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl IsaCap {
    /// The spelling in configuration and reports.
    pub const fn name(self) -> &'static str {
        match self {
            IsaCap::Generic => "generic",
            IsaCap::Sse2 => "sse2",
            IsaCap::Avx2 => "avx2",
            IsaCap::Avx512 => "avx512",
            IsaCap::Neon => "neon",
        }
    }

    /// Whether `self` as a limit lets `level` run: `generic` always, otherwise what is lower on the same architecture.
    fn admits(self, level: IsaCap) -> bool {
        let same_architecture = (self == IsaCap::Neon) == (level == IsaCap::Neon);
        level == IsaCap::Generic || (same_architecture && level <= self)
    }
}

/// An instruction set that this CPU has. A value is a proof: only detection makes one.
#[derive(Clone, Copy)]
pub struct Isa(&'static Table);

impl Isa {
    /// The best instruction set of this CPU.
    pub fn detect() -> Self {
        Self::detect_capped(None)
    }

    /// The best instruction set of this CPU that is not above `cap`. A cap of another architecture leaves `generic`.
    pub fn detect_capped(cap: Option<IsaCap>) -> Self {
        let allowed = |isa: &Isa| cap.is_none_or(|cap| cap.admits(isa.level()));
        Self::available().filter(allowed).last().unwrap_or(Self::generic())
    }

    /// The portable kernels, which every CPU runs.
    pub fn generic() -> Self {
        Self(&const { Portable::TABLE })
    }

    /// All instruction sets of this CPU, worst first.
    pub fn available() -> impl Iterator<Item = Self> {
        std::iter::once(Self::generic()).chain(native().into_iter().flatten())
    }

    /// Which one it is.
    pub fn level(self) -> IsaCap {
        self.0.level
    }

    /// `f32` per vector register.
    pub fn lanes(self) -> usize {
        self.0.lanes
    }

    pub(super) fn table(self) -> &'static Table {
        self.0
    }
}

impl std::fmt::Debug for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Isa({})", self.level())
    }
}

impl PartialEq for Isa {
    fn eq(&self, other: &Self) -> bool {
        self.level() == other.level()
    }
}

impl Eq for Isa {}

#[cfg(target_arch = "x86_64")]
fn native() -> [Option<Isa>; 3] {
    use super::x86::{Avx2, Avx512, Sse2};
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq");
    [
        Some(Isa(&const { Sse2::TABLE })),
        avx2.then_some(Isa(&const { Avx2::TABLE })),
        avx512.then_some(Isa(&const { Avx512::TABLE })),
    ]
}

#[cfg(target_arch = "aarch64")]
fn native() -> [Option<Isa>; 1] {
    [Some(Isa(&const { super::neon::Neon::TABLE }))]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn native() -> [Option<Isa>; 0] {
    []
}
