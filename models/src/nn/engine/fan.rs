//! Work for several threads: recursion over `join`, which allocates nothing.

/// Whether pieces of work run one after the other or on the threads of the pool that we are in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::nn) enum Fan {
    /// One after the other, here.
    Inline,
    /// On the pool's threads.
    Pool,
}

impl Fan {
    /// Runs `work` in `pool`, or here.
    pub(in crate::nn) fn within<R: Send>(
        pool: Option<&rayon::ThreadPool>,
        work: impl FnOnce(Self) -> R + Send,
    ) -> R {
        match pool {
            Some(pool) if pool.current_num_threads() > 1 => pool.install(|| work(Self::Pool)),
            _ => work(Self::Inline),
        }
    }

    /// How many pieces run at a time; asked in the pool.
    pub(super) fn threads(self) -> usize {
        match self {
            Self::Inline => 1,
            Self::Pool => rayon::current_num_threads(),
        }
    }

    /// Calls `f(number, item)` for each item.
    pub(super) fn each<T: Send>(self, items: &mut [T], f: &(impl Fn(usize, &mut T) + Sync)) {
        match self {
            Self::Inline => items.iter_mut().enumerate().for_each(|(i, item)| f(i, item)),
            Self::Pool => join(items, 0, f),
        }
    }
}

fn join<T: Send>(items: &mut [T], first: usize, f: &(impl Fn(usize, &mut T) + Sync)) {
    match items {
        [] => {}
        [one] => f(first, one),
        _ => {
            let middle = items.len() / 2;
            let (left, right) = items.split_at_mut(middle);
            rayon::join(|| join(left, first, f), || join(right, first + middle, f));
        }
    }
}
