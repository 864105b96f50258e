//! The host's side of rounds.
use super::event::{Abandoned, Event, Published};
use super::phase::{Collecting, Outcome, Phase};
use super::{Millis, Policy};
use crate::id::{ClientId, Hash, RoundId};
use crate::tensor::rng::{Key, Purpose};
use crate::wire::{
    Adopt, Answer, Bytes, Decline, Name, Outlook, PartRef, Poll, Receipt, Reject, Session, Task, Why,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is the same for every task of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Charter {
    /// The method's name.
    pub method: Name,
    /// Its hyper-parameters, encoded.
    pub hyper: Bytes<2048>,
    /// Identity of the model's specification.
    pub spec: Hash,
    /// Passes over a board's data in one task.
    pub epochs: u32,
}

/// What the method's current state tells each board: indices into the shared parts, and the encoded rest.
pub trait Briefing: Send + Sync + std::fmt::Debug {
    /// For a picked board.
    fn task(&self, to: ClientId) -> (Vec<u16>, Vec<u8>);
    /// For a board that takes the model over.
    fn offer(&self, to: ClientId) -> (Vec<u16>, Vec<u8>);
}

/// What a board asks. Updates are named by the hash of their sealed bytes, which the shell has stored and checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// What shall I do?
    Poll(Poll),
    /// Here is my update.
    Submit {
        /// Who sends it.
        session: Session,
        /// The round it belongs to.
        round: RoundId,
        /// The blob it is kept in.
        update: Hash,
    },
    /// I won't do this.
    Decline(Decline),
}

/// What the host answers.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one value at a time, moved straight into the encoder")]
pub enum Reply {
    /// To a poll.
    Answer(Answer),
    /// To anything else.
    Receipt(Receipt),
}

/// A request handled: the events must be durable before the reply goes out.
#[derive(Debug)]
pub struct Handled {
    /// What happened.
    pub events: Vec<Event>,
    /// The reply.
    pub reply: Result<Reply, Reject>,
}

/// Work for the shell. Its result comes back through [`Coordinator::complete`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Make the method's first state.
    Prepare,
    /// Fold these updates into the state.
    Aggregate {
        /// The round.
        round: RoundId,
        /// The state before.
        state: Hash,
        /// Who replied with which update, sorted.
        replies: Vec<(ClientId, Hash)>,
    },
    /// Make the final state.
    Finish {
        /// The state before.
        state: Hash,
    },
}

/// What came of an [`Effect`].
#[derive(Clone, Debug)]
pub enum Completion {
    /// A new state, stored, with what it tells boards.
    Done {
        /// The state and the parts, all stored.
        published: Published,
        /// What it tells each board.
        briefing: Arc<dyn Briefing>,
    },
    /// It failed; the old state stays.
    Failed {
        /// Why.
        why: String,
    },
}

/// Where a run is, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The phase.
    pub phase: Phase,
    /// The open or next round.
    pub round: RoundId,
    /// Boards known and not revoked.
    pub boards: usize,
    /// Of these, heard of within the lease.
    pub live: usize,
    /// Failures in a row.
    pub failures: u32,
    /// The published state.
    pub published: Option<Published>,
}

#[derive(Clone, Debug, Default)]
struct Board {
    session: Option<Session>,
    seen: Option<Millis>,
    revoked: bool,
    last: Option<(RoundId, Hash)>,
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
        let mut run = Self::new(policy, charter);
        events.into_iter().for_each(|event| run.apply(event));
        run.boards.values_mut().filter(|b| b.session.is_some()).for_each(|b| b.seen = Some(now));
        if run.phase == Phase::Stalled {
            run.failures = 0;
            run.phase = run.ready(now);
        }
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
            live: self.live(now).len(),
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

    /// Takes note of a device that the operator revoked.
    pub fn revoke(&mut self, now: Millis, client: ClientId) -> Vec<Event> {
        let mut events = Vec::new();
        self.emit(&mut events, Event::Revoked { client });
        self.advance(now, &mut events);
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

    fn greet(
        &mut self,
        now: Millis,
        from: ClientId,
        session: Session,
        events: &mut Vec<Event>,
    ) -> Result<(), Reject> {
        let board = self.boards.get_mut(&from).ok_or(Reject::UnknownDevice)?;
        if board.revoked {
            return Err(Reject::Revoked);
        }
        match board.session {
            Some(known) if known == session => {}
            Some(known) if known.epoch >= session.epoch => {
                return Err(Reject::Superseded { epoch: known.epoch });
            }
            _ => self.emit(events, Event::Session { client: from, session }),
        }
        if let Some(board) = self.boards.get_mut(&from) {
            board.seen = Some(now);
        }
        Ok(())
    }

    fn answer(&self, now: Millis, from: ClientId, poll: &Poll) -> Result<Answer, Reject> {
        let round = self.round;
        let why = match &self.phase {
            Phase::Collecting(open) => match open.cohort.get(&from) {
                Some(Outcome::Awaited) => return self.task(now, from, open).map(Answer::Task),
                Some(_) => Why::Collecting { round },
                None => Why::NotSelected { round },
            },
            Phase::Preparing => Why::Aggregating { round },
            Phase::Aggregating(_) | Phase::Finishing => Why::Aggregating { round },
            Phase::Gathering { not_before } if now < *not_before => Why::Aggregating { round },
            Phase::Gathering { .. } => {
                Why::TooFewBoards { have: self.live(now).len() as u32, need: self.policy.min_boards }
            }
            Phase::Stalled => Why::Stalled { round },
            Phase::Finished if poll.held != Some(self.policy.rounds) => {
                return self.offer(from).map(Answer::Adopt);
            }
            Phase::Finished => Why::Finished,
        };
        Ok(Answer::Wait(Outlook { retry_ms: self.policy.poll_ms, why }))
    }

    fn task(&self, now: Millis, to: ClientId, open: &Collecting) -> Result<Task, Reject> {
        let (parts, body) = self.briefing.as_ref().ok_or(Reject::Internal)?.task(to);
        Ok(Task {
            round: self.round,
            attempt: open.attempt,
            remaining_ms: now.until(open.deadline),
            spec: self.charter.spec,
            seed: self.policy.seed,
            method: self.charter.method.clone(),
            hyper: self.charter.hyper.clone(),
            codec: self.policy.codec,
            epochs: self.charter.epochs,
            parts: self.named(&parts).into_iter().collect(),
            body: Bytes::from_slice(&body).map_err(|_| Reject::Internal)?,
        })
    }

    fn offer(&self, to: ClientId) -> Result<Adopt, Reject> {
        let (parts, body) = self.briefing.as_ref().ok_or(Reject::Internal)?.offer(to);
        Ok(Adopt {
            version: self.policy.rounds,
            spec: self.charter.spec,
            seed: self.policy.seed,
            method: self.charter.method.clone(),
            hyper: self.charter.hyper.clone(),
            parts: self.named(&parts).into_iter().collect(),
            body: Bytes::from_slice(&body).map_err(|_| Reject::Internal)?,
        })
    }

    fn named(&self, indices: &[u16]) -> Vec<PartRef> {
        let parts = self.published.as_ref().map_or(&[][..], |p| &p.parts);
        indices.iter().filter_map(|&i| parts.get(usize::from(i)).copied()).collect()
    }

    /// Takes an update, at most once for each board and round; every other case has its own name.
    fn submit(
        &mut self,
        from: ClientId,
        round: RoundId,
        update: Hash,
        events: &mut Vec<Event>,
    ) -> Result<Receipt, Reject> {
        let current = self.round;
        if self.boards.get(&from).and_then(|b| b.last) == Some((round, update)) {
            return Ok(Receipt::AlreadyAccepted);
        }
        if round > current {
            return Err(Reject::Resync { current });
        }
        if round < current {
            let late = round.next() == current && self.previous.contains(&from);
            return Err(if late { Reject::Late { current } } else { Reject::Stale { current } });
        }
        match &self.phase {
            Phase::Collecting(open) => match open.cohort.get(&from) {
                None => Err(Reject::NotSelected { round }),
                Some(Outcome::Accepted(accepted)) => Err(Reject::Duplicate { accepted: *accepted }),
                Some(Outcome::Awaited | Outcome::Declined) => {
                    self.emit(events, Event::Accepted { round, client: from, update });
                    Ok(Receipt::Accepted)
                }
            },
            Phase::Aggregating(closed) if closed.cohort.contains_key(&from) => {
                Err(Reject::Late { current: current.next() })
            }
            _ => Err(Reject::NotSelected { round }),
        }
    }

    fn decline(
        &mut self,
        from: ClientId,
        decline: &Decline,
        events: &mut Vec<Event>,
    ) -> Result<Receipt, Reject> {
        let round = self.round;
        match &self.phase {
            Phase::Collecting(open)
                if decline.round == round && open.cohort.get(&from) == Some(&Outcome::Awaited) =>
            {
                self.emit(events, Event::Declined { round, client: from, why: decline.why });
                Ok(Receipt::Noted)
            }
            _ => Ok(Receipt::Noted),
        }
    }

    fn live(&self, now: Millis) -> Vec<ClientId> {
        let lease = self.policy.lease_ms;
        let is_live = |b: &Board| !b.revoked && b.seen.is_some_and(|seen| seen.until(now) <= lease);
        self.boards.iter().filter(|(_, b)| is_live(b)).map(|(id, _)| *id).collect()
    }

    /// Opens and closes rounds as far as time and replies allow.
    fn advance(&mut self, now: Millis, events: &mut Vec<Event>) {
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
        let live = self.live(now);
        if live.len() < self.policy.min_boards as usize {
            return;
        }
        let (round, attempt) = (self.round, self.attempt);
        let cohort = draw_cohort(&self.policy, round, attempt, &live);
        self.emit(
            events,
            Event::Opened { round, attempt, cohort, deadline: now.after(self.policy.round_ms) },
        );
    }

    fn fail(&mut self, now: Millis, why: Abandoned, events: &mut Vec<Event>) {
        let pause = self.policy.retry_ms.saturating_mul(1 << self.failures.min(16));
        self.emit(events, Event::Failed { round: self.round, why, again: now.after(pause) });
    }

    fn emit(&mut self, events: &mut Vec<Event>, event: Event) {
        self.apply(&event);
        events.push(event);
    }

    /// The only place where state changes.
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Enrolled { client } => {
                self.boards.entry(*client).or_default();
            }
            Event::Revoked { client } => self.revoked(*client),
            Event::Session { client, session } => {
                self.boards.entry(*client).or_default().session = Some(*session);
            }
            Event::Ready { published } => self.publish(published, Phase::Gathering { not_before: Millis(0) }),
            Event::Opened { round, attempt, cohort, deadline } => {
                self.round = *round;
                let cohort = cohort.iter().map(|id| (*id, Outcome::Awaited)).collect();
                self.phase = Phase::Collecting(Collecting { attempt: *attempt, cohort, deadline: *deadline });
            }
            Event::Accepted { round, client, update } => {
                self.note(*client, Outcome::Accepted(*update));
                self.boards.entry(*client).or_default().last = Some((*round, *update));
            }
            Event::Declined { client, .. } => self.note(*client, Outcome::Declined),
            Event::Closed { .. } => self.closed(),
            Event::Folded { round, published } => self.folded(*round, published),
            Event::Failed { again, .. } => self.failed(*again),
            Event::Finished { published } => self.publish(published, Phase::Finished),
        }
    }

    fn revoked(&mut self, client: ClientId) {
        self.boards.entry(client).or_default().revoked = true;
        if let Phase::Collecting(open) = &mut self.phase {
            open.cohort.remove(&client);
        }
    }

    fn note(&mut self, client: ClientId, outcome: Outcome) {
        if let Phase::Collecting(open) = &mut self.phase {
            open.cohort.insert(client, outcome);
        }
    }

    fn publish(&mut self, published: &Published, phase: Phase) {
        self.published = Some(published.clone());
        self.phase = phase;
        self.dispatched = false;
    }

    fn closed(&mut self) {
        if let Phase::Collecting(open) = &self.phase {
            self.phase = Phase::Aggregating(open.clone());
            self.dispatched = false;
        }
    }

    fn folded(&mut self, round: RoundId, published: &Published) {
        if let Phase::Aggregating(closed) = &self.phase {
            self.previous = closed.cohort.keys().copied().collect();
        }
        (self.round, self.attempt, self.failures) = (round.next(), 0, 0);
        self.published = Some(published.clone());
        self.publish(published, self.ready(Millis(0)));
    }

    fn failed(&mut self, again: Millis) {
        self.failures += 1;
        self.attempt += 1;
        self.dispatched = false;
        let stalled = self.failures >= self.policy.max_failures;
        self.phase = if stalled { Phase::Stalled } else { self.ready(again) };
    }

    /// Where a run goes on when nothing is open.
    fn ready(&self, not_before: Millis) -> Phase {
        match self.published {
            None => Phase::Preparing,
            Some(_) if self.round.0 >= self.policy.rounds => Phase::Finishing,
            Some(_) => Phase::Gathering { not_before },
        }
    }
}

/// Who takes part: ⌈ρ·N⌉ of the live boards, without replacement, keyed by seed, round and attempt; sorted.
pub fn draw_cohort(policy: &Policy, round: RoundId, attempt: u32, live: &[ClientId]) -> Vec<ClientId> {
    let key = Key::new(policy.seed, Purpose::Cohort).of(round, ClientId(0)).step(u64::from(attempt));
    let order = key.stream().permutation(live.len());
    let mut cohort: Vec<_> = order.into_iter().take(policy.cohort(live.len())).map(|i| live[i]).collect();
    cohort.sort_unstable();
    cohort
}
