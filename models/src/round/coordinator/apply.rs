//! How events change the state: live and in replay alike.
use super::Coordinator;
use crate::id::{ClientId, RoundId};
use crate::round::Millis;
use crate::round::event::{Abandoned, Event, Published};
use crate::round::phase::{Collecting, Outcome, Phase};

impl Coordinator {
    /// The only place where state changes.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Enrolled { client } => {
                self.boards.entry(*client).or_default();
            }
            Event::Revoked { client } => self.revoked(*client),
            Event::Session { client, session } => {
                let board = self.boards.entry(*client).or_default();
                (board.session, board.heard) = (Some(*session), false);
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
            Event::Failed { again, why, .. } => self.failed(*again, why),
            Event::Finished { published } => self.publish(published, Phase::Finished),
            Event::Mode { client, update } => {
                let silent = !self.asked(*update).is_possible(&self.charter.spec);
                let board = self.boards.entry(*client).or_default();
                (board.update, board.silent) = (*update, silent);
            }
        }
    }

    pub(super) fn revoked(&mut self, client: ClientId) {
        self.boards.entry(client).or_default().revoked = true;
        if let Phase::Collecting(open) = &mut self.phase {
            open.cohort.remove(&client);
        }
    }

    pub(super) fn note(&mut self, client: ClientId, outcome: Outcome) {
        if let Phase::Collecting(open) = &mut self.phase {
            open.cohort.insert(client, outcome);
        }
    }

    pub(super) fn publish(&mut self, published: &Published, phase: Phase) {
        self.published = Some(published.clone());
        self.phase = phase;
        self.dispatched = false;
    }

    pub(super) fn closed(&mut self) {
        if let Phase::Collecting(open) = &self.phase {
            self.phase = Phase::Aggregating(open.clone());
            self.dispatched = false;
        }
    }

    pub(super) fn folded(&mut self, round: RoundId, published: &Published) {
        if let Phase::Aggregating(closed) = &self.phase {
            self.previous = closed.cohort.keys().copied().collect();
        }
        (self.round, self.attempt, self.failures, self.missed) = (round.next(), 0, 0, 0);
        self.published = Some(published.clone());
        self.publish(published, self.ready(Millis(0)));
    }

    /// Where boards didn't reply, again and again, the operator must look: the run stalls. What fails on the host, such as a full
    /// disk, is tried again, ever more slowly, until it is repaired.
    pub(super) fn failed(&mut self, again: Millis, why: &Abandoned) {
        self.failures += 1;
        self.missed += u32::from(matches!(why, Abandoned::TooFew { .. }));
        self.attempt += 1;
        self.dispatched = false;
        // What was accepted in a failed round counts no more: the same bytes may come again and count then.
        let round = self.round;
        self.boards.values_mut().filter(|b| b.last.is_some_and(|l| l.0 == round)).for_each(|b| b.last = None);
        let stalled = self.missed >= self.policy.max_failures;
        self.phase = if stalled { Phase::Stalled } else { self.ready(again) };
        if matches!(self.phase, Phase::Preparing | Phase::Finishing) {
            (self.rest, self.dispatched) = (Some(again), true);
        }
    }

    /// Where a run goes on when nothing is open.
    pub(super) fn ready(&self, not_before: Millis) -> Phase {
        match self.published {
            None => Phase::Preparing,
            Some(_) if self.round.0 >= self.policy.rounds => Phase::Finishing,
            Some(_) => Phase::Gathering { not_before },
        }
    }
}
