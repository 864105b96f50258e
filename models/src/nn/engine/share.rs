//! Which values and gradients can lie in the same memory: those that are never alive together.
use crate::nn::layer::Plane;

/// Memory that something needs for a while.
#[derive(Clone, Debug)]
pub(super) struct Need {
    /// Floats.
    pub len: usize,
    /// The plane whose border must stay zero; none where everything is written before it is read.
    pub bordered: Option<Plane>,
    /// When it is alive: first and last moment, both included.
    pub alive: Vec<(usize, usize)>,
}

impl Need {
    fn meets(&self, other: &Self) -> bool {
        self.alive.iter().any(|a| other.alive.iter().any(|b| a.0 <= b.1 && b.0 <= a.1))
    }
}

/// For each need its place, and the length of each place. The largest choose first; each takes the first place that is free while it is alive.
pub(super) fn share(needs: &[Need]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(needs[i].len));
    let mut places: Vec<Vec<usize>> = vec![];
    let mut chosen = vec![0; needs.len()];
    for i in order {
        let free = |place: &&Vec<usize>| {
            place.iter().all(|&j| needs[j].bordered == needs[i].bordered && !needs[j].meets(&needs[i]))
        };
        let place = places.iter().position(|p| free(&p)).unwrap_or(places.len());
        if place == places.len() {
            places.push(vec![]);
        }
        places[place].push(i);
        chosen[i] = place;
    }
    (chosen, places.iter().map(|place| needs[place[0]].len).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_overwritten_while_it_is_alive(spans in prop::collection::vec((1usize..50, 0usize..20, 0usize..5), 1..30)) {
            let needs: Vec<Need> = spans
                .iter()
                .map(|&(len, from, lasts)| Need { len, bordered: None, alive: vec![(from, from + lasts)] })
                .collect();
            let (chosen, lens) = share(&needs);
            for i in 0..needs.len() {
                prop_assert!(needs[i].len <= lens[chosen[i]]);
                prop_assert!((0..i).all(|j| chosen[i] != chosen[j] || !needs[i].meets(&needs[j])));
            }
            prop_assert!(lens.iter().sum::<usize>() <= needs.iter().map(|n| n.len).sum());
        }
    }
}
