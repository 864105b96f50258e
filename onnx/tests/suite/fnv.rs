//! Numbers that Python makes, too: `tests/golden/README.md`.

fn splitmix64(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `symmetric(stream, i)`, the stream being the FNV-1a hash of a name.
pub(crate) fn symmetric(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let hash = |h: u32, byte: u8| (h ^ u32::from(byte)).wrapping_mul(16_777_619);
    let stream = u64::from(name.bytes().fold(2_166_136_261, hash));
    let bits = move |i: u64| splitmix64(i.wrapping_add(stream << 32));
    (0..count as u64).map(move |i| ((bits(i) >> 40) as f64 - 8_388_608.0) / 8_388_608.0)
}
