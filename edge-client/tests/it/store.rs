//! The private directory: whatever moment power fails at, one whole generation is there.
use edge_client::secret::Secret;
use edge_client::store::{Identity, Record, Store, StoreError};
use models::id::{Hash, RoundId};
use models::round::Pending;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn identity() -> Identity {
    let key = Secret::new(b"device key of this board".to_vec());
    Identity { name: "kitchen".into(), host: "https://h:1".into(), key, membership: None }
}

/// A directory with two generations: an update waits in the first, it is settled in the second.
fn two_generations(dir: &Path) {
    let mut store = Store::open(dir).unwrap();
    let pending = Some(Pending { round: RoundId(7), sealed: vec![1, 2, 3] });
    store
        .update(|r| {
            r.identity = Some(identity());
            r.epoch = 5;
            r.personal.pending = pending;
        })
        .unwrap();
    store.update(|r| (r.epoch, r.personal.pending) = (6, None)).unwrap();
}

fn epoch(dir: &Path) -> Result<u32, StoreError> {
    Store::peek(dir).map(|record| record.epoch)
}

#[test]
fn what_is_stored_is_there_after_a_restart() {
    let dir = dir();
    two_generations(dir.path());
    let store = Store::open(dir.path()).unwrap();
    assert_eq!((store.record().epoch, store.recovered()), (6, None));
    assert_eq!(store.record().identity.as_ref().unwrap().key, identity().key);
    assert!(matches!(store.record().enrolled(dir.path()), Err(StoreError::NotEnrolled { .. })));
}

#[test]
fn a_state_cut_at_any_byte_gives_the_generation_before() {
    let dir = dir();
    two_generations(dir.path());
    let whole = fs::read(dir.path().join("state")).unwrap();
    for cut in 0..whole.len() {
        fs::write(dir.path().join("state"), &whole[..cut]).unwrap();
        assert_eq!(epoch(dir.path()).unwrap(), 5, "cut at {cut}");
    }
    assert!(Store::open(dir.path()).unwrap().recovered().is_some());
}

#[test]
fn a_state_with_any_byte_changed_gives_the_generation_before() {
    let dir = dir();
    two_generations(dir.path());
    let whole = fs::read(dir.path().join("state")).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x40;
        fs::write(dir.path().join("state"), &changed).unwrap();
        assert_eq!(epoch(dir.path()).unwrap(), 5, "byte {at}");
    }
}

#[test]
fn both_generations_damaged_is_an_error_by_name() {
    let dir = dir();
    two_generations(dir.path());
    for file in ["state", "state.prev"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        fs::write(dir.path().join(file), &bytes[..bytes.len() - 1]).unwrap();
    }
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn every_moment_of_a_replacement_leaves_a_whole_generation() {
    let dir = dir();
    two_generations(dir.path());
    let path = |name: &str| dir.path().join(name);
    let next = fs::read(path("state")).unwrap();
    let before = fs::read(path("state.prev")).unwrap();
    // While the successor is being written, the old state stands.
    for cut in [0, 1, next.len() / 2, next.len() - 1] {
        fs::write(path("state"), &before).unwrap();
        fs::write(path("state.new"), &next[..cut]).unwrap();
        assert_eq!(epoch(dir.path()).unwrap(), 5, "cut at {cut}");
    }
    // Written, not yet renamed; and between the two renames.
    fs::write(path("state.new"), &next).unwrap();
    assert_eq!(epoch(dir.path()).unwrap(), 6);
    fs::remove_file(path("state")).unwrap();
    assert_eq!(epoch(dir.path()).unwrap(), 6);
    // The next write goes on from there.
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(store.begin_epoch().unwrap(), 7);
    drop(store);
    assert_eq!(epoch(dir.path()).unwrap(), 7);
}

#[test]
fn a_lost_start_is_never_counted_twice() {
    let dir = dir();
    let mut store = Store::open(dir.path()).unwrap();
    let first = store.begin_epoch().unwrap();
    let second = store.begin_epoch().unwrap();
    drop(store);
    fs::write(dir.path().join("state"), b"damaged").unwrap();
    let after = Store::open(dir.path()).unwrap().begin_epoch().unwrap();
    assert!(first < second && second < after, "{first} {second} {after}");
}

#[test]
fn a_second_process_is_refused_by_name_and_looking_is_not() {
    let dir = dir();
    two_generations(dir.path());
    let store = Store::open(dir.path()).unwrap();
    let error = Store::open(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("in use by another edge-client") && error.contains(&std::process::id().to_string()),
        "{error}"
    );
    assert_eq!(epoch(dir.path()).unwrap(), 6);
    drop(store);
    Store::open(dir.path()).unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let outer = dir();
    let inner = outer.path().join("board");
    two_generations(&inner);
    Store::open(&inner).unwrap().blobs(100).put(Hash::of(b"x"), b"x").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(&inner.join("blobs"))), (0o700, 0o700));
    for file in ["state", "state.prev", "lock"] {
        assert_eq!(mode(&inner.join(file)), 0o600, "{file}");
    }
}

#[test]
fn no_secret_shows_in_debug() {
    let mut record = Record { identity: Some(identity()), ..Record::default() };
    record.personal.learned = Secret::new(b"private head".to_vec());
    let shown = format!("{record:?}");
    assert!(shown.contains("Secret(24 bytes)"), "{shown}");
    assert!(!shown.contains("100, 101, 118"), "{shown}");
}

#[test]
fn the_cache_keeps_under_its_cap_and_gives_no_damaged_blob() {
    let dir = dir();
    let store = Store::open(dir.path()).unwrap();
    let cache = store.blobs(1000);
    let blob = |n: u8| vec![n; 400];
    for n in 0..4 {
        cache.put(Hash::of(&blob(n)), &blob(n)).unwrap();
    }
    assert!(cache.size() <= 1000 && cache.get(Hash::of(&blob(3))) == Some(blob(3)));
    let file = dir.path().join("blobs").join(Hash::of(&blob(3)).to_string());
    fs::write(&file, b"damaged").unwrap();
    assert_eq!(cache.get(Hash::of(&blob(3))), None);
    assert!(!file.exists());
}
