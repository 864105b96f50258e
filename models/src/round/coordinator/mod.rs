//! The host's side of rounds.
//!
//! Here is what a shell calls; `serve` answers boards, `apply` is the only place where state changes.
mod apply;
mod serve;
mod terms;

pub use terms::{Briefing, Charter, Completion, Effect, Handled, Reply, Request, Status};

use super::event::{Abandoned, Event, Published};
use super::phase::{Collecting, Outcome, Phase};
use super::{Millis, Policy};
use crate::fed::Coverage;
use crate::id::{ClientId, Hash, RoundId};
use crate::params::UpdateMode;
use crate::tensor::rng::{Key, Purpose};
use crate::wire::{Reject, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Longest pause after a failure, in milliseconds.
const LONGEST_PAUSE: u64 = 5 * 60_000;

#[derive(Clone, Debug, Default)]
struct Board {
    session: Option<Session>,
    seen: Option<Millis>,
    revoked: bool,
    last: Option<(RoundId, Hash)>,
    starts: Starts,
    /// The most that it trains.
    update: UpdateMode,
    /// It trains nothing that is shared.
    silent: bool,
    /// It has said so in its present session.
    heard: bool,
}

/// New sessions of a board since the begin of an hour, so that none can fill the ledger with them.
#[derive(Clone, Copy, Debug, Default)]
struct Starts {
    since: Millis,
    count: u32,
}

impl Starts {
    fn admit(&mut self, now: Millis, most: u32) -> Result<(), Reject> {
        const HOUR: u64 = 3_600_000;
        if self.since.until(now) >= HOUR {
            *self = Self { since: now, count: 0 };
        }
        if self.count >= most {
            let retry_ms = (HOUR - self.since.until(now)) as u32;
            return Err(Reject::TooManySessions { retry_ms });
        }
        self.count += 1;
        Ok(())
    }
}

/// The host's state machine.
#[derive(Debug)]
pub struct Coordinator {
    policy: Policy,
    charter: Charter,
    boards: BTreeMap<ClientId, Board>,
    published: Option<Published>,
    briefing: Option<Arc<dyn Briefing>>,
    round: RoundId,
    attempt: u32,
    failures: u32,
    /// Of these, the ones that boards caused.
    missed: u32,
    /// Failed work is not tried again before.
    rest: Option<Millis>,
    phase: Phase,
    previous: BTreeSet<ClientId>,
    dispatched: bool,
}

impl Coordinator {
    /// A run that has not begun.
    pub fn new(policy: Policy, charter: Charter) -> Self {
        Self {
            policy,
            charter,
            boards: BTreeMap::new(),
            published: None,
            briefing: None,
            round: RoundId(0),
            attempt: 0,
            failures: 0,
            missed: 0,
            rest: None,
            phase: Phase::Preparing,
            previous: BTreeSet::new(),
            dispatched: false,
        }
    }

    /// A run as its events left it. Boards known so far get a fresh lease; a stalled run may try again.
    pub fn replay<'a>(
        policy: Policy,
        charter: Charter,
        now: Millis,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Self {
        let mut run = Self::recall(policy, charter, events);
        run.boards.values_mut().filter(|b| b.session.is_some()).for_each(|b| b.seen = Some(now));
        if run.phase == Phase::Stalled {
            (run.failures, run.missed) = (0, 0);
            run.phase = run.ready(now);
        }
        (run.rest, run.dispatched) = (None, false);
        run
    }

    /// A run as its events left it, stalled where it stalled: to be looked at.
    pub fn recall<'a>(policy: Policy, charter: Charter, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut run = Self::new(policy, charter);
        events.into_iter().for_each(|event| run.apply(event));
        run
    }

    /// Gives a replayed run what its published state tells boards; needed whenever [`Status::published`] is there.
    pub fn brief(&mut self, briefing: Arc<dyn Briefing>) {
        self.briefing = Some(briefing);
    }

    /// Where the run is.
    pub fn status(&self, now: Millis) -> Status {
        let boards = self.boards.values().filter(|b| !b.revoked).count();
        let (round, failures) = (self.round, self.failures);
        Status {
            phase: self.phase.clone(),
            round,
            boards,
            live: self.live(now).count(),
            sending: self.sending(now).len(),
            failures,
            published: self.published.clone(),
        }
    }

    /// Takes note of a device that the ledger enrolled. The same number twice changes nothing.
    pub fn enroll(&mut self, client: ClientId) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.boards.contains_key(&client) {
            self.emit(&mut events, Event::Enrolled { client });
        }
        events
    }

    /// Takes note of a device that the operator revoked. The same number twice changes nothing.
    pub fn revoke(&mut self, now: Millis, client: ClientId) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.boards.get(&client).is_some_and(|board| board.revoked) {
            self.emit(&mut events, Event::Revoked { client });
            self.advance(now, &mut events);
        }
        events
    }

    /// Handles one request of an authenticated device.
    pub fn handle(&mut self, now: Millis, from: ClientId, request: &Request) -> Handled {
        let mut events = Vec::new();
        let session = match request {
            Request::Poll(poll) => poll.session,
            Request::Submit { session, .. } => *session,
            Request::Decline(decline) => decline.session,
        };
        let reply = self.greet(now, from, session, &mut events).and_then(|()| match request {
            Request::Poll(poll) => {
                self.listen(from, poll.update, &mut events);
                self.advance(now, &mut events);
                self.answer(now, from, poll).map(Reply::Answer)
            }
            Request::Submit { round, update, .. } => {
                self.submit(from, *round, *update, &mut events).map(Reply::Receipt)
            }
            Request::Decline(decline) => self.decline(from, decline, &mut events).map(Reply::Receipt),
        });
        self.advance(now, &mut events);
        Handled { events, reply }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Millis) -> Vec<Event> {
        let mut events = Vec::new();
        self.advance(now, &mut events);
        events
    }

    /// When [`Coordinator::handle_timeout`] must be called at the latest.
    pub fn poll_timeout(&self) -> Option<Millis> {
        match &self.phase {
            Phase::Collecting(open) => Some(open.deadline),
            Phase::Gathering { not_before } if not_before.0 > 0 => Some(*not_before),
            Phase::Preparing | Phase::Finishing => self.rest,
            _ => None,
        }
    }

    /// Work to be done, each piece once in a process's life.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        if std::mem::replace(&mut self.dispatched, true) {
            return None;
        }
        let state = self.published.as_ref().map(|p| p.state);
        let effect = match (&self.phase, state) {
            (Phase::Preparing, _) => Some(Effect::Prepare),
            (Phase::Aggregating(closed), Some(state)) => {
                Some(Effect::Aggregate { round: self.round, state, replies: closed.accepted() })
            }
            (Phase::Finishing, Some(state)) => Some(Effect::Finish { state }),
            _ => None,
        };
        self.dispatched = effect.is_some();
        effect
    }

    /// Takes the result of the effect that is out.
    pub fn complete(&mut self, now: Millis, done: Completion) -> Vec<Event> {
        let mut events = Vec::new();
        match done {
            Completion::Done { published, briefing } => {
                self.briefing = Some(briefing);
                let event = match self.phase {
                    Phase::Preparing => Event::Ready { published },
                    Phase::Finishing => Event::Finished { published },
                    _ => Event::Folded { round: self.round, published },
                };
                self.emit(&mut events, event);
            }
            Completion::Failed { why } => self.fail(now, Abandoned::Aggregation { why }, &mut events),
        }
        self.advance(now, &mut events);
        events
    }

    /// Whether an update of this board for this round would count now: the shell stores no other.
    pub fn awaits(&self, client: ClientId, session: Session, round: RoundId) -> bool {
        let heard = |board: &Board| {
            !board.revoked
                && board.session.is_none_or(|known| known == session || known.epoch < session.epoch)
        };
        let picked = |open: &Collecting| {
            matches!(open.cohort.get(&client), Some(Outcome::Awaited | Outcome::Declined))
        };
        round == self.round
            && self.boards.get(&client).is_some_and(heard)
            && matches!(&self.phase, Phase::Collecting(open) if picked(open))
    }

    /// Whether this blob is one that the board's current task or offer names.
    pub fn may_read(&self, client: ClientId, blob: Hash) -> bool {
        let plan = match (&self.phase, &self.briefing) {
            (Phase::Collecting(open), Some(briefing)) if open.cohort.contains_key(&client) => {
                briefing.task(client)
            }
            (Phase::Finished, Some(briefing)) if self.boards.contains_key(&client) => briefing.offer(client),
            _ => return false,
        };
        self.named(&plan.0).iter().any(|part| part.hash == blob)
    }

    fn live(&self, now: Millis) -> impl Iterator<Item = (ClientId, &Board)> {
        let lease = self.policy.lease_ms;
        let is_live = move |b: &Board| !b.revoked && b.seen.is_some_and(|seen| seen.until(now) <= lease);
        self.boards.iter().filter(move |(_, b)| is_live(b)).map(|(id, b)| (*id, b))
    }

    /// Who may be picked: a live board that has something to send.
    fn sending(&self, now: Millis) -> Vec<ClientId> {
        self.live(now).filter(|(_, b)| !b.silent).map(|(id, _)| id).collect()
    }

    /// What a board that trains at most this would be asked for.
    fn asked(&self, own: UpdateMode) -> Coverage {
        let mode = own.at_most(self.policy.update, &self.charter.spec);
        Coverage { extent: self.charter.extent, mode }
    }

    /// Opens and closes rounds as far as time and replies allow.
    fn advance(&mut self, now: Millis, events: &mut Vec<Event>) {
        if self.rest.is_some_and(|until| now >= until) {
            (self.rest, self.dispatched) = (None, false);
        }
        match &self.phase {
            Phase::Gathering { not_before } if now >= *not_before => self.open(now, events),
            Phase::Collecting(open) if open.awaited() == 0 || now >= open.deadline => {
                let (got, needed) = (open.accepted().len(), self.policy.needed(open.cohort.len()));
                if got >= needed {
                    self.emit(events, Event::Closed { round: self.round });
                } else {
                    self.fail(now, Abandoned::TooFew { got: got as u32, needed: needed as u32 }, events);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, now: Millis, events: &mut Vec<Event>) {
        let sending = self.sending(now);
        if sending.len() < self.policy.min_boards as usize {
            return;
        }
        let (round, attempt) = (self.round, self.attempt);
        let cohort = draw_cohort(&self.policy, round, attempt, &sending);
        self.emit(
            events,
            Event::Opened { round, attempt, cohort, deadline: now.after(self.policy.round_ms) },
        );
    }

    fn fail(&mut self, now: Millis, why: Abandoned, events: &mut Vec<Event>) {
        let most = LONGEST_PAUSE.max(self.policy.retry_ms);
        let pause = self.policy.retry_ms.saturating_mul(1 << self.failures.min(16)).min(most);
        self.emit(events, Event::Failed { round: self.round, why, again: now.after(pause) });
    }

    fn emit(&mut self, events: &mut Vec<Event>, event: Event) {
        self.apply(&event);
        events.push(event);
    }
}

/// Who takes part: ⌈ρ·N⌉ of the live boards that have something to send, without replacement, keyed by seed, round and attempt; sorted.
pub fn draw_cohort(policy: &Policy, round: RoundId, attempt: u32, live: &[ClientId]) -> Vec<ClientId> {
    let key = Key::new(policy.seed, Purpose::Cohort).of(round, ClientId(0)).step(u64::from(attempt));
    let order = key.stream().permutation(live.len());
    let mut cohort: Vec<_> = order.into_iter().take(policy.cohort(live.len())).map(|i| live[i]).collect();
    cohort.sort_unstable();
    cohort
}
