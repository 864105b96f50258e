//! What every ledger must keep, as assertions: a new one is right when [`check`] comes back.
use super::{Admission, Enrolment, Ledger, LedgerError, Record, Standing, TokenNote};
use crate::clock::Millis;
use models::id::{ClientId, Hash};
use models::wire::Health;

const NOW: Millis = Millis(1_800_000_000_000);
const LATER: Millis = Millis(1_800_000_060_000);

/// Runs the suite. `open` opens the same, at first empty, ledger each time.
///
/// # Panics
/// Where the ledger falls short.
pub async fn check(open: impl AsyncFn() -> Box<dyn Ledger>) {
    events_come_back_in_order(&open).await;
    a_token_lets_one_key_in(&open).await;
    standings_and_refusals_are_kept(&open).await;
    many_enrol_at_once(&open).await;
}

fn wish(token: &[u8], key: &[u8], at: Millis) -> Enrolment {
    Enrolment { token: Hash::of(token), key: Hash::of(key), name: "board".into(), at }
}

async fn admitted(ledger: &dyn Ledger, wish: Enrolment) -> ClientId {
    match ledger.enrol(wish).await {
        Ok(Admission::In(device)) => device.id,
        other => panic!("not admitted: {other:?}"),
    }
}

async fn events_come_back_in_order(open: &impl AsyncFn() -> Box<dyn Ledger>) {
    let ledger = open().await;
    let record = |kind, byte| Record { kind, body: vec![byte; 3] };
    ledger.append(NOW, vec![record("a", 1), record("b", 2)]).await.expect("append");
    ledger.append(LATER, vec![]).await.expect("append nothing");
    ledger.append(LATER, vec![record("c", 3)]).await.expect("append");
    let kept = open().await.events(0, 10).await.expect("another connection sees them");
    assert_eq!(kept.iter().map(|k| k.seq).collect::<Vec<_>>(), [1, 2, 3], "numbered without gaps");
    assert_eq!(kept.iter().map(|k| k.kind.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((kept[0].at, kept[2].at, &kept[2].body), (NOW, LATER, &vec![3; 3]));
    let rest = ledger.events(1, 1).await.expect("a page");
    assert_eq!(rest.iter().map(|k| k.seq).collect::<Vec<_>>(), [2], "after 1, at most 1");
}

async fn a_token_lets_one_key_in(open: &impl AsyncFn() -> Box<dyn Ledger>) {
    let ledger = open().await;
    for token in [b"t1", b"t2", b"t3"] {
        ledger.add_token(Hash::of(token), None, LATER).await.expect("token");
    }
    assert!(ledger.add_token(Hash::of(b"t1"), None, LATER).await.is_err(), "the same token twice");
    assert_eq!(ledger.enrol(wish(b"none", b"k1", NOW)).await.expect("asked"), Admission::UnknownToken);
    assert_eq!(ledger.enrol(wish(b"t1", b"k1", LATER)).await.expect("asked"), Admission::ExpiredToken);
    let first = admitted(&*ledger, wish(b"t1", b"k1", NOW)).await;
    assert_eq!(
        admitted(&*ledger, wish(b"t1", b"k1", LATER)).await,
        first,
        "a lost answer can be asked for again"
    );
    assert_eq!(ledger.enrol(wish(b"t1", b"k2", NOW)).await.expect("asked"), Admission::UsedToken);
    assert_eq!(admitted(&*ledger, wish(b"t2", b"k1", NOW)).await, first, "the same key keeps its number");
    assert_eq!(admitted(&*ledger, wish(b"t3", b"k2", NOW)).await, ClientId(first.0 + 1), "numbers are dense");
    ledger.add_token(Hash::of(b"t4"), Some("kitchen".into()), LATER).await.expect("token");
    let tokens = ledger.tokens().await.expect("asked");
    let open: Vec<_> = tokens.iter().filter(|t| t.used_by.is_none()).collect();
    assert!(matches!(open[..], [TokenNote { name: Some(name), not_after: LATER, .. }] if name == "kitchen"));
    assert_eq!(tokens.iter().filter(|t| t.used_by == Some(Hash::of(b"k1"))).count(), 2);
}

async fn standings_and_refusals_are_kept(open: &impl AsyncFn() -> Box<dyn Ledger>) {
    let ledger = open().await;
    let device = ledger.device_by_key(Hash::of(b"k1")).await.expect("asked").expect("enrolled above");
    assert_eq!((device.standing, device.refusals, device.seen), (Standing::Active, 0, NOW));
    ledger.set_standing(device.id, Standing::Revoked).await.expect("revoke");
    ledger.heard(device.id, LATER).await.expect("heard");
    let health = Health { compared: -1, route_decile: 3 };
    ledger.felt(device.id, health).await.expect("health");
    for reject in ["late", "late", "stale"] {
        ledger.refused(device.id, reject).await.expect("count");
    }
    let again = open().await.device_by_key(device.key).await.expect("asked").expect("still there");
    assert_eq!((again.standing, again.refusals, again.seen), (Standing::Revoked, 3, LATER));
    assert_eq!((device.health, again.health), (None, Some(health)));
    assert_eq!(ledger.refusals(device.id).await.expect("asked"), [("late".into(), 2), ("stale".into(), 1)]);
    assert_eq!(ledger.enrol(wish(b"t1", b"k1", NOW)).await.expect("asked"), Admission::RevokedKey);
    assert_eq!(ledger.device_by_key(Hash::of(b"nobody")).await.expect("asked"), None);
    assert!(matches!(
        ledger.set_standing(ClientId(99), Standing::Active).await,
        Err(LedgerError::NoDevice(ClientId(99)))
    ));
}

async fn many_enrol_at_once(open: &impl AsyncFn() -> Box<dyn Ledger>) {
    let (one, other) = (open().await, open().await);
    let before = one.devices().await.expect("asked").len();
    for n in 0..8_u8 {
        one.add_token(Hash::of(&[n]), Some(format!("n{n}")), LATER).await.expect("token");
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    tokio::join!(enrol_all(&*one, 0..4, &mut left), enrol_all(&*other, 4..8, &mut right));
    let devices = one.devices().await.expect("asked");
    let ids: Vec<_> = devices.iter().map(|d| d.id.0 as usize).collect();
    assert_eq!(ids, (0..before + 8).collect::<Vec<_>>(), "dense and sorted, whoever came first");
}

async fn enrol_all(ledger: &dyn Ledger, keys: std::ops::Range<u8>, into: &mut Vec<ClientId>) {
    for n in keys {
        into.push(admitted(ledger, wish(&[n], &[n, n], NOW)).await);
    }
}
