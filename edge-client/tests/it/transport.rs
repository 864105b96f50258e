//! What surrounds the connection: addresses, paths, time, and answers that are none.
use edge_client::transport::{Address, Call, CallError, HostClock, Link, Memory};
use models::fed::Extent;
use models::id::Hash;
use models::nn::arch;
use models::params::UpdateMode;
use models::wire::{Endpoint, Envelope, PartRef, Poll, Receipt, Reject, Session, to_bytes};

fn link(answer: impl FnMut(Call<'_>) -> Result<Vec<u8>, CallError> + 'static) -> Link {
    Link::new(Box::new(Memory(answer)), HostClock::new(0))
}

const POLL: Poll = Poll { session: Session { epoch: 1, nonce: 1 }, held: None, update: UpdateMode::Full };

#[test]
fn only_an_https_address_without_a_path_is_a_host() {
    assert_eq!(
        "https://host.example:8443/".parse::<Address>().unwrap().to_string(),
        "https://host.example:8443"
    );
    assert!("https://[::1]:8443".parse::<Address>().is_ok());
    for wrong in [
        "",
        "host:8443",
        "http://host:8443",
        "https://",
        "https://host/path",
        "https://host?x=1",
        "ftp://host",
        "https://user:secret@host:8443",
        "https://user@host",
    ] {
        assert!(wrong.parse::<Address>().is_err(), "{wrong}");
    }
}

#[test]
fn a_hash_takes_its_place_in_the_path() {
    let hash = Hash::of(b"part");
    let call = Call { endpoint: Endpoint::BLOB, hash: Some(hash), body: &[], cap: 1 };
    assert_eq!(call.path(), format!("/v1/blob/{hash}"));
}

#[test]
fn the_hosts_time_is_heard_and_never_runs_back() {
    let start = HostClock::new(0).seconds();
    assert!(start > 1_700_000_000, "a board that starts in 1970 knows better");
    let mut answering = link(|_| Ok(to_bytes(&Envelope::at(2_000_000_000, Receipt::Noted)).unwrap()));
    answering.submit(&[]).unwrap();
    assert_eq!(answering.clock().seconds(), 2_000_000_000);
    let clock = HostClock::new(7);
    clock.heard(2_000_000_000);
    clock.heard(5);
    assert_eq!(clock.seconds(), 2_000_000_000);
}

#[test]
fn what_is_no_answer_of_the_protocol_is_strange_and_another_version_has_a_name() {
    let mut portal = link(|_| Ok(b"<html>please log in</html>".to_vec()));
    assert!(matches!(portal.poll(&POLL), Err(CallError::Strange { .. })));
    let newer = |_: Call<'_>| {
        let outlook = models::wire::Outlook { retry_ms: 1, why: models::wire::Why::Finished };
        let mut envelope = Envelope::at(1, models::wire::Answer::Wait(outlook));
        envelope.version = 9;
        Ok(to_bytes(&envelope).unwrap())
    };
    assert!(matches!(link(newer).poll(&POLL), Err(CallError::Refused(Reject::Version { .. }))));
}

#[test]
fn a_shared_part_with_another_content_or_length_is_not_taken() {
    let (_, spec) = arch::build(&crate::host::card()).unwrap();
    let right = vec![0_u8; 4 * spec.len()];
    let part = PartRef { extent: Extent::Model, hash: Hash::of(&right) };
    let mut wrong = right.clone();
    wrong[0] = 1;
    for (bytes, good) in [(right.clone(), true), (wrong, false), (right[..4].to_vec(), false)] {
        assert_eq!(link(move |_| Ok(bytes.clone())).blob(part, &spec).is_ok(), good);
    }
}
