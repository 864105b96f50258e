use super::*;
use proptest::prelude::*;

fn idx_bytes(code: u8, extents: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, extents.len() as u8];
    extents.iter().for_each(|e| bytes.extend(e.to_be_bytes()));
    bytes.extend(data);
    bytes
}

#[test]
fn grey_images_and_labels_pair_up() {
    let images =
        idx::parse(&idx_bytes(8, &[2, 2, 2], &[0, 51, 102, 255, 1, 2, 3, 4])).unwrap().into_inputs().unwrap();
    let samples = Samples::new(images, vec![0, 1]).unwrap();
    let mut pixels = [0.0; 4];
    samples.inputs().write(0, &mut pixels);
    assert_eq!(pixels, [0.0, 0.2, 0.4, 1.0]);
    assert_eq!(samples.counts(3), [1, 1, 0]);
    assert_eq!(samples.select(&[1]).inputs().elements(), &Elements::U8(vec![1, 2, 3, 4]));
}

#[test]
fn colour_images_become_channel_first() {
    let last = idx::parse(&idx_bytes(8, &[1, 1, 2, 3], &[1, 2, 3, 4, 5, 6])).unwrap().into_inputs().unwrap();
    assert_eq!((last.input(), last.elements()), ([3, 1, 2], &Elements::U8(vec![1, 4, 2, 5, 3, 6])));
    let first = idx::parse(&idx_bytes(8, &[1, 3, 1, 2], &[1, 2, 3, 4, 5, 6])).unwrap().into_inputs().unwrap();
    assert_eq!((first.input(), first.elements()), ([3, 1, 2], &Elements::U8(vec![1, 2, 3, 4, 5, 6])));
}

#[test]
fn sensor_windows_become_channels_over_time() {
    let data: Vec<u8> = [1i16, 2, 3, 4, 5, -32768].iter().flat_map(|v| v.to_be_bytes()).collect();
    let windows = idx::parse(&idx_bytes(11, &[1, 3, 2], &data)).unwrap().into_inputs().unwrap();
    assert_eq!(windows.input(), [2, 1, 3]);
    assert_eq!(windows.elements(), &Elements::I16(vec![1, 3, 5, 2, 4, -32768]));
    assert_eq!(windows.to_f32()[5], -1.0);
}

#[test]
fn what_is_wrong_with_an_idx_file_is_named() {
    let lying = idx_bytes(8, &[u32::MAX, u32::MAX, u32::MAX, u32::MAX], &[0; 4]);
    assert!(matches!(idx::parse(&lying), Err(DataError::Size { got: 4, .. })));
    assert!(matches!(idx::parse(&[]), Err(DataError::Short { needed: 4, got: 0, .. })));
    assert!(matches!(idx::parse(&[0, 0, 8, 3, 0]), Err(DataError::Short { needed: 16, got: 5, .. })));
    assert!(matches!(idx::parse(&[0x1f, 0x8b, 8, 0]), Err(DataError::NotIdx { start: [0x1f, 0x8b] })));
    assert!(matches!(idx::parse(&idx_bytes(13, &[0], &[])), Err(DataError::ElementType { code: 13 })));
    assert!(matches!(idx::parse(&[0, 0, 8, 255]), Err(DataError::Rank { got: 255, .. })));
    let flat = idx::parse(&idx_bytes(8, &[2, 0, 3], &[])).unwrap();
    assert!(matches!(flat.into_inputs(), Err(DataError::Extents { .. })));
    let image = idx::parse(&idx_bytes(8, &[1, 1, 1], &[7])).unwrap();
    assert!(matches!(image.clone().into_labels(), Err(DataError::Rank { got: 3, .. })));
    let unpaired = Samples::new(image.into_inputs().unwrap(), vec![]);
    assert_eq!(unpaired, Err(DataError::Unpaired { samples: 1, labels: 0 }));
}

#[test]
fn samples_are_checked_against_the_model() {
    let names = ["cat".to_owned(), "dog".to_owned()];
    let inputs = Inputs::new([1, 1, 1], Elements::U8(vec![1, 2])).unwrap();
    let samples = Samples::new(inputs, vec![1, 2]).unwrap();
    let error = samples.check([1, 1, 1], &names).unwrap_err();
    assert_eq!(error.to_string(), "sample 1 has label 2, but the model knows 0 to 1 only (cat, dog)");
    assert!(matches!(samples.check([3, 1, 1], &names), Err(DataError::Input { .. })));
    assert_eq!(samples.select(&[0]).check([1, 1, 1], &names), Ok(()));
    assert_eq!(samples.select(&[]).check([1, 1, 1], &names), Err(DataError::Empty));
}

#[test]
fn cifar_records_give_either_label() {
    let mut record = vec![3, 42];
    record.extend([9; 3072]);
    let labels = |v| cifar::parse(&record, v).map(|s| s.labels().to_vec());
    assert_eq!(labels(cifar::Variant::Coarse), Ok(vec![3]));
    assert_eq!(labels(cifar::Variant::Fine), Ok(vec![42]));
    assert!(matches!(labels(cifar::Variant::Ten), Err(DataError::Records { record: 3073, got: 3074, .. })));
    assert_eq!(cifar::parse(&record[1..], cifar::Variant::Ten).unwrap().labels(), [42]);
}

#[test]
fn class_names_are_unique_and_printable() {
    assert_eq!(
        labels::parse("\u{feff}T-shirt/top\r\nélan \n\n".as_bytes()).unwrap(),
        ["T-shirt/top", "élan"]
    );
    for bad in ["", "a\n\nb", "a\na", "a\n\u{1b}[2J"] {
        assert!(matches!(labels::parse(bad.as_bytes()), Err(DataError::ClassName { .. })), "{bad:?}");
    }
    assert_eq!(labels::parse(b"a\n\xff"), Err(DataError::NotText { line: 2 }));
    let many: String = (0..5000).map(|i| format!("{i}\n")).collect();
    assert!(matches!(labels::parse(many.as_bytes()), Err(DataError::ClassCount { .. })));
}

#[test]
fn a_folder_means_its_exact_name_before_any_other_and_never_one_of_two() {
    let named = |labels: &[&str], name: &str| {
        labels::class_of(name, &labels.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(named(&["a/b", "a_b"], "a_b"), Some(1), "the exact name, though another reads the same");
    assert_eq!(named(&["Cat", "cat"], "cat"), Some(1));
    assert_eq!(named(&["Cat", "cat"], "CAT"), None, "two could be meant");
    assert_eq!(named(&["\u{1f431}", "\u{1f436}"], "\u{1f436}"), Some(1));
    assert_eq!(named(&["\u{1f431}", "\u{1f436}"], "_"), None);
    assert_eq!(named(&["Cat", "Dog"], "cAT"), Some(0));
    assert_eq!((named(&["Cat", "Dog"], "1"), named(&["Cat", "Dog"], "2")), (Some(1), None));
    assert_eq!((named(&["Cat", "Dog"], "+1"), named(&["Cat", "Dog"], "")), (None, None));
    assert_eq!(
        (named(&["1", "2", "3"], "1"), named(&["1", "2", "3"], "0")),
        (Some(0), None),
        "where classes are called by numbers, a number is a name"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = idx::parse(&bytes).map(|f| (f.clone().into_labels(), f.into_inputs()));
        let _ = labels::parse(&bytes);
        let _ = cifar::parse(&bytes, cifar::Variant::Fine);
    }

    #[test]
    fn any_extents_are_parsed_or_refused(code in 8u8..=11, extents in proptest::collection::vec(0u32..4, 0..6), data in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(file) = idx::parse(&idx_bytes(code, &extents, &data)) {
            prop_assert_eq!(file.extents().iter().product::<usize>() * if code == 8 { 1 } else { 2 }, data.len());
            if let Ok(inputs) = file.into_inputs() {
                prop_assert_eq!(inputs.to_f32().len(), inputs.len() * inputs.width());
            }
        }
    }
}
