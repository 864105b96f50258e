//! Who is connected: few of each kind, so that neither strangers nor one board take every place.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections that are counted by what they have in common.
#[derive(Debug)]
pub(super) struct Crowd<K: Ord + Copy> {
    here: Mutex<BTreeMap<K, usize>>,
    each: usize,
    all: usize,
}

/// A connection's place among them; it is free again when dropped.
#[derive(Debug)]
pub(super) struct Place<K: Ord + Copy> {
    crowd: Arc<Crowd<K>>,
    key: K,
}

impl<K: Ord + Copy> Crowd<K> {
    /// At most `each` of one key, and `all` together.
    pub(super) fn new(each: usize, all: usize) -> Arc<Self> {
        Arc::new(Self { here: Mutex::default(), each, all })
    }

    /// A place, if there is one left.
    pub(super) fn enter(self: &Arc<Self>, key: K) -> Option<Place<K>> {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        let full = here.values().sum::<usize>() >= self.all;
        let count = here.get(&key).copied().unwrap_or(0);
        if full || count >= self.each {
            return None;
        }
        here.insert(key, count + 1);
        Some(Place { crowd: Arc::clone(self), key })
    }
}

impl<K: Ord + Copy> Drop for Place<K> {
    fn drop(&mut self) {
        let mut here = self.crowd.here.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = here.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                here.remove(&self.key);
            }
        }
    }
}

/// What strangers have in common: their address; of IPv6 the /64, since whoever has one address there has them all.
pub(super) fn neighbourhood(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        neighbourhood(text.parse().unwrap())
    }

    #[test]
    fn each_key_has_its_places_and_gets_them_back() {
        let guests = Crowd::new(2, 9);
        let (first, _second) = (guests.enter("one").unwrap(), guests.enter("one").unwrap());
        assert!(guests.enter("one").is_none() && guests.enter("other").is_some());
        drop(first);
        assert!(guests.enter("one").is_some());
        assert_eq!(guests.here.lock().unwrap().len(), 1, "nobody is remembered who has gone");
    }

    #[test]
    fn all_together_have_no_more_than_the_reserve() {
        let guests = Crowd::new(2, 3);
        let mut here: Vec<_> = (0..9).filter_map(|n| guests.enter(n)).collect();
        assert_eq!(here.len(), 3);
        here.pop();
        assert!(guests.enter(99).is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_neighbour() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1:2:3"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
    }
}
