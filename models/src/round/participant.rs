//! The board's side of rounds.
use super::{Backoff, Millis};
use crate::fed::{Coverage, Disclosure, Extent};
use crate::id::RoundId;
use crate::params::{ModelSpec, UpdateMode};
use crate::wire::{
    Adopt, Advice, Answer, Decline, Declined, PartRef, Poll, Receipt, Reject, Session, Task, Why,
    encoded_len, split_update, submit_body,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the owner allows; anything above is refused by name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ceilings {
    /// The most a task may disclose.
    pub allow: Disclosure,
    /// Most passes over the data in one task.
    pub epochs: u32,
    /// Most bytes that one task may move, both ways together.
    pub bytes: u64,
    /// The most of the model that training changes.
    #[serde(with = "crate::params::mode::text")]
    pub update: UpdateMode,
}

impl Default for Ceilings {
    fn default() -> Self {
        Self { allow: Disclosure::Backbone, epochs: 10, bytes: 256 << 20, update: UpdateMode::Full }
    }
}

/// A finished update that the host has not confirmed: kept on disk with the private state that belongs to it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Pending {
    /// The round.
    pub round: RoundId,
    /// The sealed update; sent as it is, however often.
    pub sealed: Vec<u8>,
}

/// What the shell shall do next. It tells the result with [`Participant::handle`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the host.
    Poll(Poll),
    /// Have this shared part at hand (from the cache or from the host).
    Fetch(PartRef),
    /// Train; keep the new private state and the update together, then tell.
    Fit(Box<Task>),
    /// Take the model over and adapt it.
    Adopt(Box<Adopt>),
    /// Send this body to the update endpoint.
    Submit(Vec<u8>),
    /// Tell the host that the task is refused.
    Decline(Decline),
    /// Forget the pending update: it counts, or never will.
    Settle,
    /// Nothing until then.
    Sleep {
        /// When to step again.
        until: Millis,
        /// What the host said, if it was the host.
        why: Option<Why>,
    },
    /// Nothing a program can do.
    Stop(Stop),
}

/// Why a board stops.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// The host refuses for good.
    #[error("the host refuses: {0}")]
    Refused(Reject),
    /// The task is for another model than the host described.
    #[error("the task is for another model than the host described at enrolment; enrol again")]
    AnotherModel,
    /// The update would disclose more than the task said.
    #[error("the update would disclose {would:?} and the owner allows {allowed:?}; nothing was sent")]
    Discloses {
        /// What it would disclose.
        would: Disclosure,
        /// What is allowed.
        allowed: Disclosure,
    },
}

/// What came of a [`Step`].
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The host answered the poll.
    Answered(Box<Answer>),
    /// The part is at hand.
    Fetched,
    /// Training is done and saved.
    Fitted(Pending),
    /// The board itself refuses: training isn't possible, or would take more than the owner allows.
    CannotTrain(Declined),
    /// The model is taken over and saved.
    Adopted,
    /// The host took the update or heard the refusal.
    Received(Receipt),
    /// The pending update is forgotten.
    Settled,
    /// The host refused.
    Refused(Reject),
    /// The host can't be reached.
    Unreachable,
}

#[derive(Clone, Debug)]
enum Work {
    Fit(Box<Task>),
    Adopt(Box<Adopt>),
}

#[derive(Clone, Debug)]
enum State {
    Ask,
    Fetch { next: PartRef, rest: VecDeque<PartRef>, work: Work },
    Do(Work),
    Submit(Pending),
    Settle,
    Decline(Decline),
    Wait { until: Millis, why: Option<Why>, then: Box<State> },
    Stopped(Stop),
}

/// What a task discloses, by the board's own knowledge of the method: never by what the host says.
pub type Discloses = fn(method: &str, hyper: &[u8]) -> Option<Disclosure>;

/// The board's state machine.
#[derive(Debug)]
pub struct Participant {
    ceilings: Ceilings,
    discloses: Discloses,
    session: Session,
    held: Option<u32>,
    backoff: Backoff,
    state: State,
}

impl Participant {
    /// A process that starts: with the version of the model it holds and the update it could not deliver, if any. One that another version
    /// of this program left is forgotten: no host of this version would read it.
    pub fn new(
        ceilings: Ceilings,
        discloses: Discloses,
        session: Session,
        held: Option<u32>,
        pending: Option<Pending>,
    ) -> Self {
        let seed = u64::from(session.epoch) << 32 | u64::from(session.nonce);
        let state = match pending {
            None => State::Ask,
            Some(pending) if split_update(&pending.sealed).is_ok() => State::Submit(pending),
            Some(_) => State::Settle,
        };
        Self { ceilings, discloses, session, held, backoff: Backoff::new(seed, 500, 300_000), state }
    }

    /// What to do next.
    pub fn step(&mut self, now: Millis) -> Step {
        if let State::Wait { until, then, .. } = &self.state
            && now >= *until
        {
            self.state = (**then).clone();
        }
        match &self.state {
            State::Ask => {
                Step::Poll(Poll { session: self.session, held: self.held, update: self.ceilings.update })
            }
            State::Fetch { next, .. } => Step::Fetch(*next),
            State::Do(Work::Fit(task)) => Step::Fit(task.clone()),
            State::Do(Work::Adopt(adopt)) => Step::Adopt(adopt.clone()),
            State::Submit(pending) => Step::Submit(submit_body(self.session, &pending.sealed)),
            State::Settle => Step::Settle,
            State::Decline(decline) => Step::Decline(*decline),
            State::Wait { until, why, .. } => Step::Sleep { until: *until, why: *why },
            State::Stopped(why) => Step::Stop(*why),
        }
    }

    /// Takes the result of the last step.
    pub fn handle(&mut self, now: Millis, spec: &ModelSpec, what: Happening) {
        if !matches!(what, Happening::Unreachable | Happening::Refused(_)) {
            self.backoff.reset();
        }
        self.state = match what {
            Happening::Answered(answer) => self.answered(now, spec, *answer),
            Happening::Fetched => self.fetched(),
            Happening::Fitted(pending) => self.fitted(pending),
            Happening::CannotTrain(why) => self.cannot_train(why),
            Happening::Adopted => self.adopted(),
            Happening::Received(_) => match self.state {
                State::Submit(_) => State::Settle,
                _ => self.pause(now, State::Ask),
            },
            Happening::Settled => State::Ask,
            Happening::Refused(reject) => self.refused(now, reject),
            Happening::Unreachable => {
                let again = self.state.clone();
                self.pause(now, again)
            }
        };
    }

    fn answered(&self, now: Millis, spec: &ModelSpec, answer: Answer) -> State {
        match answer {
            Answer::Wait(outlook) => State::Wait {
                until: now.after(u64::from(outlook.retry_ms)),
                why: Some(outlook.why),
                then: Box::new(State::Ask),
            },
            Answer::Task(task) if task.spec != spec.hash() => State::Stopped(Stop::AnotherModel),
            Answer::Adopt(adopt) if adopt.spec != spec.hash() => State::Stopped(Stop::AnotherModel),
            Answer::Task(task) => match self.objection(&task, spec) {
                Some(why) => State::Decline(Decline { session: self.session, round: task.round, why }),
                None => begin(task.parts.iter().copied().collect(), Work::Fit(Box::new(task))),
            },
            Answer::Adopt(adopt) => {
                begin(adopt.parts.iter().copied().collect(), Work::Adopt(Box::new(adopt)))
            }
        }
    }

    /// Why the owner's ceilings forbid this task, if they do.
    fn objection(&self, task: &Task, spec: &ModelSpec) -> Option<Declined> {
        let Ceilings { allow, epochs, bytes, update } = self.ceilings;
        let covers = Coverage { extent: Extent::Model, mode: update.at_most(task.update, spec) };
        let Some(asked) = (self.discloses)(&task.method, &task.hyper) else { return Some(Declined::Unknown) };
        let down: usize = task.parts.iter().map(|p| 4 * p.extent.len(spec)).sum();
        let moved = (down + encoded_len(task.codec, spec, covers)) as u64;
        match () {
            () if asked > allow => Some(Declined::Disclosure { asked, allowed: allow }),
            () if !covers.is_possible(spec) => Some(Declined::NothingToSend { allowed: update }),
            () if task.epochs > epochs => Some(Declined::Epochs { asked: task.epochs, allowed: epochs }),
            () if moved > bytes => Some(Declined::Bytes { asked: moved, allowed: bytes }),
            () => None,
        }
    }

    fn fetched(&self) -> State {
        match &self.state {
            State::Fetch { rest, work, .. } => begin(rest.clone(), work.clone()),
            other => other.clone(),
        }
    }

    /// Looks at the update itself before it may leave: the last guard of `allow`.
    fn fitted(&self, pending: Pending) -> State {
        let would = match split_update(&pending.sealed) {
            Ok((header, _)) if header.extent == Extent::Backbone && !header.prototype => Disclosure::Backbone,
            _ => Disclosure::FullModel,
        };
        let allowed = self.ceilings.allow;
        if would > allowed {
            State::Stopped(Stop::Discloses { would, allowed })
        } else {
            State::Submit(pending)
        }
    }

    fn cannot_train(&self, why: Declined) -> State {
        match &self.state {
            State::Do(Work::Fit(task)) => {
                State::Decline(Decline { session: self.session, round: task.round, why })
            }
            _ => State::Ask,
        }
    }

    fn adopted(&mut self) -> State {
        if let State::Do(Work::Adopt(adopt)) = &self.state {
            self.held = Some(adopt.version);
        }
        State::Ask
    }

    fn refused(&mut self, now: Millis, reject: Reject) -> State {
        match (reject.advice(), &self.state) {
            (Advice::AskAgain, State::Submit(_)) => State::Settle,
            (Advice::AskAgain, _) => self.pause(now, State::Ask),
            (Advice::Retry, state) => {
                let state = state.clone();
                self.pause(now, state)
            }
            (Advice::Stop, _) => State::Stopped(Stop::Refused(reject)),
        }
    }

    fn pause(&mut self, now: Millis, then: State) -> State {
        State::Wait { until: now.after(self.backoff.next_ms()), why: None, then: Box::new(then) }
    }
}

/// Work begins once its parts are at hand.
fn begin(mut parts: VecDeque<PartRef>, work: Work) -> State {
    match parts.pop_front() {
        Some(next) => State::Fetch { next, rest: parts, work },
        None => State::Do(work),
    }
}
