//! Small labelled pictures that anyone can learn: a pattern per class under noise.
use crate::hashed;
use image::GrayImage;
use std::fs;
use std::path::Path;

/// The `n`-th picture of a class: `side` × `side` grey values.
pub fn picture(seed: u64, n: usize, class: u16, side: usize) -> Vec<u8> {
    let pattern = |j: usize| hashed::symmetric(1000 + u64::from(class), j as u64);
    let noise = |j: usize| hashed::symmetric(2000 + seed, (n * side * side + j) as u64);
    (0..side * side).map(|j| (127.5 + 80.0 * pattern(j) + 40.0 * noise(j)) as u8).collect()
}

/// Writes an IDX pair, one picture for each of `classes`.
///
/// # Panics
/// If the disk refuses.
pub fn write_idx(folder: &Path, seed: u64, classes: &[u16], side: usize) {
    fs::create_dir_all(folder).expect("a temporary folder can be made");
    let size = |n: usize| (n as u32).to_be_bytes();
    let mut images = [&[0, 0, 8, 3][..], &size(classes.len()), &size(side), &size(side)].concat();
    let mut labels = [&[0, 0, 8, 1][..], &size(classes.len())].concat();
    for (n, &class) in classes.iter().enumerate() {
        images.extend(picture(seed, n, class, side));
        labels.push(class as u8);
    }
    fs::write(folder.join("train-images-idx3-ubyte"), images).expect("a temporary file can be written");
    fs::write(folder.join("train-labels-idx1-ubyte"), labels).expect("a temporary file can be written");
}

/// Writes one folder of PNG files for each label, with so many pictures.
///
/// # Panics
/// If the disk refuses.
pub fn write_folders(folder: &Path, seed: u64, labels: &[(&str, usize)], side: usize) {
    for (class, &(label, count)) in labels.iter().enumerate().filter(|(_, (_, count))| *count > 0) {
        let own = folder.join(label);
        fs::create_dir_all(&own).expect("a temporary folder can be made");
        for n in 0..count {
            write_png(&own.join(format!("{n}.png")), seed, n, class as u16, side);
        }
    }
}

/// Writes one picture.
///
/// # Panics
/// If the disk refuses.
pub fn write_png(path: &Path, seed: u64, n: usize, class: u16, side: usize) {
    let image = GrayImage::from_raw(side as u32, side as u32, picture(seed, n, class, side));
    image.expect("as many pixels as it has").save(path).expect("a temporary file can be written");
}
