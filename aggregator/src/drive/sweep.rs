//! What the blob store must hold, by the ledger: everything else was left behind by a crash.
use crate::blobs::{BlobError, Blobs};
use models::id::Hash;
use models::round::{Event, Published};
use std::collections::BTreeSet;

/// Removes blobs that nothing names: states and parts stay for ever, updates until their round is over.
pub(super) async fn sweep(blobs: &Blobs, events: &[Event]) -> Result<usize, BlobError> {
    let named = named(events);
    let orphans: Vec<Hash> = blobs.names().await?.into_iter().filter(|name| !named.contains(name)).collect();
    for orphan in &orphans {
        blobs.remove(*orphan).await?;
    }
    Ok(orphans.len())
}

fn named(events: &[Event]) -> BTreeSet<Hash> {
    let (mut kept, mut open) = (BTreeSet::new(), BTreeSet::new());
    let mut keep = |p: &Published| kept.extend(p.parts.iter().map(|part| part.hash).chain([p.state]));
    for event in events {
        match event {
            Event::Ready { published } | Event::Finished { published } => keep(published),
            Event::Folded { published, .. } => {
                keep(published);
                open.clear();
            }
            Event::Accepted { update, .. } => drop(open.insert(*update)),
            Event::Failed { .. } => open.clear(),
            _ => {}
        }
    }
    kept.extend(open);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::id::{ClientId, RoundId};

    #[test]
    fn updates_of_the_open_round_stay_and_those_of_a_folded_one_go() {
        let published = |tag: &[u8]| Published { state: Hash::of(tag), parts: Vec::new() };
        let accepted =
            |tag: &[u8]| Event::Accepted { round: RoundId(0), client: ClientId(0), update: Hash::of(tag) };
        let events = [
            Event::Ready { published: published(b"s0") },
            accepted(b"u0"),
            Event::Folded { round: RoundId(0), published: published(b"s1") },
            accepted(b"u1"),
        ];
        let expected = [&b"s0"[..], b"s1", b"u1"].map(Hash::of).into();
        assert_eq!(named(&events), expected);
    }
}
