//! How much is said of whom: a board that is refused again and again fills no log.
use models::id::ClientId;
use models::round::Millis;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Refusals of one board, or of all strangers together, that are logged in a minute.
const MOST: u32 = 10;

/// Whether something is worth a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Worth {
    /// It is.
    Said,
    /// It is, and is the last of this minute.
    Last,
    /// It isn't.
    Silence,
}

/// Lines about each board in the current minute; strangers have one account. There are as many accounts as enrolled boards at most.
#[derive(Debug, Default)]
pub(crate) struct Gossip(Mutex<(u64, BTreeMap<Option<ClientId>, u32>)>);

impl Gossip {
    /// Takes note of a refusal.
    pub(super) fn note(&self, whose: Option<ClientId>, now: Millis) -> Worth {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (minute, lines) = &mut *guard;
        if *minute != now.0 / 60_000 {
            (*minute, *lines) = (now.0 / 60_000, BTreeMap::new());
        }
        let count = lines.entry(whose).or_default();
        *count = count.saturating_add(1);
        match *count {
            n if n < MOST => Worth::Said,
            MOST => Worth::Last,
            _ => Worth::Silence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_board_has_its_lines_in_a_minute_and_strangers_share_theirs() {
        let gossip = Gossip::default();
        let (noisy, other) = (Some(ClientId(1)), Some(ClientId(2)));
        let told: Vec<_> = (0..100).map(|_| gossip.note(noisy, Millis(5))).collect();
        assert_eq!(told.iter().filter(|w| **w == Worth::Said).count(), 9);
        assert_eq!((told[9], told[10], told[99]), (Worth::Last, Worth::Silence, Worth::Silence));
        assert_eq!((gossip.note(other, Millis(6)), gossip.note(None, Millis(6))), (Worth::Said, Worth::Said));
        assert_eq!(gossip.note(noisy, Millis(60_000)), Worth::Said);
    }
}
