//! Connections that have not shown a certificate: few for each address, so that no stranger takes every place.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Who is here without a certificate.
#[derive(Debug)]
pub(super) struct Guests {
    here: Mutex<BTreeMap<IpAddr, usize>>,
    most: usize,
}

/// A guest's place; it is free again when dropped.
#[derive(Debug)]
pub(super) struct Guest {
    guests: Arc<Guests>,
    from: IpAddr,
}

impl Guests {
    /// At most this many for each address.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { here: Mutex::default(), most })
    }

    /// A place, if the address has one left.
    pub(super) fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Guest> {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        let count = here.entry(from).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Guest { guests: Arc::clone(self), from })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut here = self.guests.here.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = here.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                here.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_places_and_gets_them_back() {
        let guests = Guests::new(2);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|a| a.parse::<IpAddr>().unwrap());
        let (first, _second) = (guests.enter(one).unwrap(), guests.enter(one).unwrap());
        assert!(guests.enter(one).is_none() && guests.enter(other).is_some());
        drop(first);
        assert!(guests.enter(one).is_some());
        assert_eq!(guests.here.lock().unwrap().len(), 1, "nobody is remembered who has gone");
    }
}
