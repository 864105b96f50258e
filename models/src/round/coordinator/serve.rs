//! What boards are told.
use super::Coordinator;
use crate::id::{ClientId, Hash, RoundId};
use crate::params::UpdateMode;
use crate::round::Millis;
use crate::round::event::Event;
use crate::round::phase::{Collecting, Outcome, Phase};
use crate::wire::{
    Adopt, Answer, Bytes, Decline, Outlook, PartRef, Poll, Receipt, Reject, Session, Task, Why,
};

impl Coordinator {
    pub(super) fn greet(
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
            _ => {
                board.starts.admit(now, self.policy.sessions_per_hour)?;
                self.emit(events, Event::Session { client: from, session });
            }
        }
        if let Some(board) = self.boards.get_mut(&from) {
            board.seen = Some(now);
        }
        Ok(())
    }

    /// Takes note of how much a board trains: of its first word in a session, so that none can fill the ledger by changing its mind.
    pub(super) fn listen(&mut self, client: ClientId, update: UpdateMode, events: &mut Vec<Event>) {
        let Some(board) = self.boards.get_mut(&client).filter(|b| !b.heard) else { return };
        board.heard = true;
        if board.update != update {
            self.emit(events, Event::Mode { client, update });
        }
    }

    pub(super) fn answer(&self, now: Millis, from: ClientId, poll: &Poll) -> Result<Answer, Reject> {
        let round = self.round;
        let silent = self.boards.get(&from).is_some_and(|b| b.silent);
        let why = match &self.phase {
            Phase::Collecting(open) => match open.cohort.get(&from) {
                Some(Outcome::Awaited) => return self.task(now, from, open).map(Answer::Task),
                Some(_) => Why::Collecting { round },
                None if silent => Why::NothingToSend { round },
                None => Why::NotSelected { round },
            },
            Phase::Stalled => Why::Stalled { round },
            Phase::Finished if poll.held != Some(self.round.0) => {
                return self.offer(from).map(Answer::Adopt);
            }
            Phase::Finished => Why::Finished,
            _ if silent => Why::NothingToSend { round },
            Phase::Preparing => Why::Aggregating { round },
            Phase::Aggregating(_) | Phase::Finishing => Why::Aggregating { round },
            Phase::Gathering { not_before } if now < *not_before => Why::Aggregating { round },
            Phase::Gathering { .. } => {
                Why::TooFewBoards { have: self.sending(now).len() as u32, need: self.policy.min_boards }
            }
        };
        Ok(Answer::Wait(Outlook { retry_ms: self.policy.poll_ms, why }))
    }

    pub(super) fn task(&self, now: Millis, to: ClientId, open: &Collecting) -> Result<Task, Reject> {
        let (parts, body) = self.briefing.as_ref().ok_or(Reject::Internal)?.task(to);
        Ok(Task {
            round: self.round,
            attempt: open.attempt,
            remaining_ms: now.until(open.deadline),
            spec: self.charter.spec.hash(),
            seed: self.policy.seed,
            method: self.charter.method.clone(),
            hyper: self.charter.hyper.clone(),
            codec: self.policy.codec,
            epochs: self.charter.epochs,
            update: self.policy.update,
            parts: self.named(&parts).into_iter().collect(),
            body: Bytes::from_slice(&body).map_err(|_| Reject::Internal)?,
        })
    }

    pub(super) fn offer(&self, to: ClientId) -> Result<Adopt, Reject> {
        let (parts, body) = self.briefing.as_ref().ok_or(Reject::Internal)?.offer(to);
        Ok(Adopt {
            // The rounds really trained, whatever the policy says by now.
            version: self.round.0,
            spec: self.charter.spec.hash(),
            seed: self.policy.seed,
            method: self.charter.method.clone(),
            hyper: self.charter.hyper.clone(),
            parts: self.named(&parts).into_iter().collect(),
            body: Bytes::from_slice(&body).map_err(|_| Reject::Internal)?,
        })
    }

    pub(super) fn named(&self, indices: &[u16]) -> Vec<PartRef> {
        let parts = self.published.as_ref().map_or(&[][..], |p| &p.parts);
        indices.iter().filter_map(|&i| parts.get(usize::from(i)).copied()).collect()
    }

    /// Takes an update, at most once for each board and round; every other case has its own name.
    pub(super) fn submit(
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

    pub(super) fn decline(
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
}
