//! Local data: what is wrong is named, nothing is dropped in silence, nothing panics.
use edge_client::data::{Loaded, LocalDataError, Target, load, queries};
use flate2::Compression;
use flate2::write::GzEncoder;
use image::{GrayImage, Luma, Rgb, RgbImage};
use models::data::{DataError, Elements};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const GREY: [usize; 3] = [1, 4, 4];

fn labels() -> Vec<String> {
    ["T-shirt/top", "Sneaker", "Bag"].map(String::from).to_vec()
}

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn picture(path: &Path, side: u32, value: u8) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    GrayImage::from_pixel(side, side, Luma([value])).save(path).unwrap();
}

fn load_grey(path: impl Into<PathBuf>, resize: bool) -> Result<Loaded, LocalDataError> {
    load(&[path.into()], Target { input: GREY, labels: &labels(), resize })
}

fn idx(path: &Path, extents: &[u32], data: &[u8], packed: bool) {
    let mut bytes = vec![0, 0, 8, extents.len() as u8];
    extents.iter().for_each(|e| bytes.extend(e.to_be_bytes()));
    bytes.extend(data);
    if packed {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).unwrap();
        bytes = encoder.finish().unwrap();
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_folder_per_class_is_read_in_the_order_of_names() {
    let dir = dir();
    picture(&dir.path().join("sneaker/b.png"), 4, 20);
    picture(&dir.path().join("sneaker/a.png"), 4, 10);
    picture(&dir.path().join("T-shirt_top/x.png"), 4, 30);
    picture(&dir.path().join("2/x.png"), 4, 40);
    fs::write(dir.path().join("sneaker/.hidden.png"), "no picture").unwrap();
    fs::write(dir.path().join("sneaker/notes.txt"), "no picture").unwrap();
    let loaded = load_grey(dir.path(), false).unwrap();
    assert_eq!(loaded.samples.labels(), [2, 0, 1, 1]);
    let Elements::U8(pixels) = loaded.samples.inputs().elements() else { panic!("pictures are bytes") };
    assert_eq!(pixels.chunks(16).map(|p| p[0]).collect::<Vec<_>>(), [40, 30, 10, 20]);
    assert!(loaded.warnings.iter().any(|w| w.contains("only 4 samples")), "{:?}", loaded.warnings);
}

#[test]
fn colour_and_grey_become_what_the_model_takes() {
    let dir = dir();
    fs::create_dir_all(dir.path().join("bag")).unwrap();
    RgbImage::from_pixel(4, 4, Rgb([10, 20, 30])).save(dir.path().join("bag/c.png")).unwrap();
    let target = Target { input: [3, 4, 4], labels: &labels(), resize: false };
    let colour = load(&[dir.path().into()], target).unwrap();
    let Elements::U8(pixels) = colour.samples.inputs().elements().clone() else {
        panic!("pictures are bytes")
    };
    assert_eq!((pixels[0], pixels[16], pixels[32]), (10, 20, 30));
    assert_eq!(load_grey(dir.path(), false).unwrap().samples.len(), 1);
    let many = Target { input: [6, 4, 4], ..target };
    assert!(matches!(load(&[dir.path().into()], many), Err(LocalDataError::NoPictures { channels: 6 })));
}

#[test]
fn another_size_is_an_error_that_names_the_way_out() {
    let dir = dir();
    picture(&dir.path().join("bag/a.png"), 8, 7);
    let error = load_grey(dir.path(), false).unwrap_err().to_string();
    assert!(
        error.contains("a.png is 8×8") && error.contains("takes 4×4") && error.contains("--resize"),
        "{error}"
    );
    assert_eq!(load_grey(dir.path(), true).unwrap().samples.len(), 1);
}

#[test]
fn corrupt_pictures_are_named_and_counted_and_all_corrupt_is_an_error() {
    let dir = dir();
    let bad =
        |n: usize| fs::write(dir.path().join(format!("bag/bad{n}.png")), b"\x89PNG\r\n\x1a\n cut").unwrap();
    fs::create_dir_all(dir.path().join("bag")).unwrap();
    (0..7).for_each(bad);
    fs::write(dir.path().join("bag/empty.jpg"), b"").unwrap();
    let error = load_grey(dir.path(), false).unwrap_err().to_string();
    assert!(error.contains("none of the 8 pictures") && error.contains("bad0.png"), "{error}");
    picture(&dir.path().join("bag/good.png"), 4, 1);
    let loaded = load_grey(dir.path(), false).unwrap();
    assert_eq!(loaded.samples.len(), 1);
    let said = loaded.warnings.join("\n");
    assert!(said.contains("bad0.png") && said.contains("3 more pictures"), "{said}");
}

#[test]
fn unknown_folders_are_warned_of_and_only_unknown_ones_are_an_error() {
    let dir = dir();
    picture(&dir.path().join("spoon/a.png"), 4, 1);
    let error = load_grey(dir.path(), false).unwrap_err().to_string();
    assert!(error.contains("found spoon") && error.contains("Sneaker"), "{error}");
    picture(&dir.path().join("bag/a.png"), 4, 1);
    let loaded = load_grey(dir.path(), false).unwrap();
    assert_eq!(loaded.samples.labels(), [2]);
    assert!(loaded.warnings.iter().any(|w| w.contains("spoon is no class")), "{:?}", loaded.warnings);
    assert!(
        loaded.warnings.iter().any(|w| w.contains("every sample is of class \"Bag\"")),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn nothing_there_is_said_in_words() {
    let dir = dir();
    assert!(matches!(
        load(&[], Target { input: GREY, labels: &labels(), resize: false }),
        Err(LocalDataError::NoSource)
    ));
    assert!(matches!(load_grey(dir.path(), false), Err(LocalDataError::NothingThere { .. })));
    assert!(matches!(load_grey(dir.path().join("absent"), false), Err(LocalDataError::Read { .. })));
    fs::create_dir(dir.path().join("bag")).unwrap();
    assert!(matches!(
        load_grey(dir.path(), false),
        Err(LocalDataError::Parse { source: DataError::Empty, .. })
    ));
    let flat = tempfile::tempdir().unwrap();
    picture(&flat.path().join("a.png"), 4, 1);
    assert!(matches!(load_grey(flat.path(), false), Err(LocalDataError::NoClasses { .. })));
}

#[test]
fn idx_pairs_are_found_by_folder_by_file_and_by_both_names() {
    let dir = dir();
    let images = dir.path().join("train-images-idx3-ubyte.gz");
    let classes = dir.path().join("train-labels-idx1-ubyte.gz");
    idx(&images, &[2, 4, 4], &[9; 32], true);
    idx(&dir.path().join("t10k-images-idx3-ubyte"), &[1, 4, 4], &[9; 16], false);
    assert!(
        matches!(load_grey(&images, false), Err(LocalDataError::NoLabels { labels, .. }) if labels == classes)
    );
    idx(&classes, &[2], &[1, 0], true);
    let both = PathBuf::from(format!("{},{}", images.display(), classes.display()));
    for source in [dir.path().into(), images, both] {
        assert_eq!(load_grey(source, false).unwrap().samples.labels(), [1, 0]);
    }
}

#[test]
fn idx_files_that_do_not_fit_are_refused_by_name() {
    let dir = dir();
    let images = dir.path().join("images-idx3-ubyte");
    let classes = dir.path().join("labels-idx1-ubyte");
    idx(&images, &[2, 4, 4], &[9; 32], false);
    let refused = || match load_grey(&images, false) {
        Err(LocalDataError::Parse { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    idx(&classes, &[3], &[0, 0, 0], false);
    assert_eq!(refused(), DataError::Unpaired { samples: 2, labels: 3 });
    idx(&classes, &[2], &[0, 3], false);
    assert!(matches!(refused(), DataError::UnknownLabel { sample: 1, label: 3, last: 2, .. }));
    idx(&images, &[2, 4, 4], &[9; 31], false);
    assert!(matches!(refused(), DataError::Size { got: 31, .. }));
    idx(&images, &[0, 4, 4], &[], false);
    idx(&classes, &[0], &[], false);
    assert_eq!(refused(), DataError::Empty);
    idx(&images, &[2, 5, 4], &[9; 40], false);
    idx(&classes, &[2], &[0, 0], false);
    assert!(matches!(refused(), DataError::Input { .. }));
}

#[test]
fn cifar_batches_of_a_folder_are_put_together() {
    let dir = dir();
    let record = |label: u8| [vec![label], vec![label; 3072]].concat();
    fs::write(dir.path().join("data_batch_2.bin"), [record(2), record(1)].concat()).unwrap();
    fs::write(dir.path().join("data_batch_1.bin"), record(0)).unwrap();
    fs::write(dir.path().join("test_batch.bin"), record(1)).unwrap();
    let target = Target { input: [3, 32, 32], labels: &labels(), resize: false };
    assert_eq!(load(&[dir.path().into()], target).unwrap().samples.labels(), [0, 2, 1]);
    fs::write(dir.path().join("data_batch_1.bin"), [0; 100]).unwrap();
    assert!(matches!(
        load(&[dir.path().into()], target),
        Err(LocalDataError::Parse { source: DataError::Records { .. }, .. })
    ));
}

#[test]
fn questions_keep_their_names_and_bad_ones_do_not_stop_the_others() {
    let dir = dir();
    picture(&dir.path().join("a.png"), 4, 255);
    fs::write(dir.path().join("b.png"), "no picture").unwrap();
    idx(&dir.path().join("x-images-idx3-ubyte"), &[2, 4, 4], &[0; 32], false);
    let target = Target { input: GREY, labels: &labels(), resize: false };
    let asked = queries(&[dir.path().into()], target).unwrap();
    let names: Vec<_> = asked.names.iter().map(|n| n.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["a.png", "x-images-idx3-ubyte[0]", "x-images-idx3-ubyte[1]"]);
    assert_eq!((asked.values[0], asked.values.len(), asked.unusable.len()), (1.0, 48, 1));
    assert!(queries(&[dir.path().join("b.png")], target).is_err());
    assert!(queries(&[dir.path().join("absent.png")], target).is_err());
}
