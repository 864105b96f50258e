//! The loop that takes part in rounds: does what [`Participant`] says, and makes every result durable before telling it.
mod clock;
mod words;

pub use clock::{Clock, Uptime};

use crate::personal::{LearnError, Personal, Place};
use crate::store::{BlobCache, Store, StoreError};
use crate::train::{TrainerError, Workshop};
use crate::transport::{CallError, Link};
use models::fed::erased::method;
use models::nn::Split;
use models::round::{Ceilings, Happening, Participant, Step, Stop};
use models::wire::{Adopt, Declined, PartRef, Reject, Session, Task, Why, part_values};
use std::sync::Arc;
use std::time::Instant;
use words::{trained, waiting};

/// Why a board stopped taking part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The private directory can't be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The protocol says stop.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The final model can't be used here; asking again would give the same model.
    #[error("model {version} can't be taken over: {source}")]
    Adopt {
        /// Its version.
        version: u32,
        /// Why.
        source: LearnError,
    },
    /// The local data can't be trained on.
    #[error(transparent)]
    Trainer(#[from] TrainerError),
    /// `--once`, and the host didn't answer.
    #[error("{0}")]
    Unreachable(CallError),
}

/// When the loop ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// The host has nothing to do now.
    Idle,
    /// Training is over and the board has the model.
    Finished,
    /// Never by itself.
    Forever,
}

/// What the owner allows beside [`Ceilings`]: judged by what this board measures.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// Longest training of one task, in minutes.
    pub minutes: u64,
    /// Most memory of one task, in bytes.
    pub memory: u64,
}

/// A board that takes part.
pub struct Agent<'a> {
    /// Its private directory.
    pub store: &'a mut Store,
    /// Its way to the host.
    pub link: &'a mut Link,
    /// Shared parts on disk.
    pub cache: BlobCache,
    /// Its data and the arithmetic on them.
    pub workshop: &'a mut Workshop,
    /// What a task may ask. What training changes at most is the workshop's to say.
    pub ceilings: Ceilings,
    /// What a task may take.
    pub means: Means,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Where the owner reads what happens.
    pub log: &'a mut dyn FnMut(&str),
}

impl std::fmt::Debug for Agent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Agent(board {})", self.workshop.client())
    }
}

/// What a task discloses, by this program's own knowledge of the method.
fn discloses(name: &str, hyper: &[u8]) -> Option<models::fed::Disclosure> {
    method(name).and_then(|m| m.discloses(hyper)).ok()
}

impl Agent<'_> {
    /// Takes part until the end that is asked for.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn run(&mut self, until: Until, nonce: u32) -> Result<(), AgentError> {
        let epoch = self.store.begin_epoch()?;
        let personal = &self.store.record().personal;
        let (held, pending) = (personal.held, personal.pending.clone());
        if let Some(pending) = &pending {
            (self.log)(&format!("round {}: an update was not confirmed, sending it again", pending.round));
        }
        let session = Session { epoch, nonce };
        let ceilings = Ceilings { update: self.workshop.update(), ..self.ceilings };
        let mut participant = Participant::new(ceilings, discloses, session, held, pending);
        let mut last = Failure::default();
        loop {
            let happened = match participant.step(self.clock.now()) {
                Step::Sleep { until: then, why } => {
                    if self.is_over(until, why, &mut last)? {
                        return Ok(());
                    }
                    self.clock.sleep_until(then);
                    continue;
                }
                Step::Stop(stop) => return Err(stop.into()),
                step => self.perform(step, &mut last)?,
            };
            participant.handle(self.clock.now(), self.workshop.spec(), happened);
        }
    }

    /// Whether a pause is the end; says why the board waits, once for each reason.
    fn is_over(&mut self, until: Until, why: Option<Why>, last: &mut Failure) -> Result<bool, AgentError> {
        if why.is_some() && why != last.waiting {
            last.waiting = why;
            (self.log)(&waiting(why));
        }
        match (until, why, last.call.take()) {
            (Until::Idle, None, Some(error)) => Err(AgentError::Unreachable(error)),
            (Until::Idle, Some(_), _) | (Until::Finished, Some(Why::Finished), _) => Ok(true),
            _ => Ok(false),
        }
    }

    fn perform(&mut self, step: Step, last: &mut Failure) -> Result<Happening, AgentError> {
        match step {
            Step::Poll(poll) => {
                let answer = self.link.poll(&poll);
                Ok(self.told(answer, last, |a| Happening::Answered(Box::new(a))))
            }
            Step::Fetch(part) => self.fetch(part, last),
            Step::Fit(task) => self.fit(&task),
            Step::Adopt(offer) => self.adopt(&offer),
            Step::Submit(body) => {
                let receipt = self.link.submit(&body);
                Ok(self.told(receipt, last, Happening::Received))
            }
            Step::Decline(decline) => {
                (self.log)(&format!("round {}: declined: {}", decline.round, decline.why));
                let receipt = self.link.decline(&decline);
                Ok(self.told(receipt, last, Happening::Received))
            }
            Step::Settle => {
                self.store.update(|r| r.personal.pending = None)?;
                Ok(Happening::Settled)
            }
            Step::Sleep { .. } | Step::Stop(_) => unreachable!("the loop has taken these out"),
        }
    }

    /// The answer to a call as the participant hears it; failures are logged when they change.
    fn told<T>(
        &mut self,
        answer: Result<T, CallError>,
        last: &mut Failure,
        ok: impl FnOnce(T) -> Happening,
    ) -> Happening {
        match answer {
            Ok(value) => {
                if std::mem::take(&mut last.logged).is_some() {
                    (self.log)("the host answers again");
                }
                ok(value)
            }
            Err(CallError::Refused(reject)) => {
                (self.log)(&format!("the host refuses: {reject}"));
                Happening::Refused(reject)
            }
            Err(error) => {
                if last.logged.as_ref() != Some(&error) {
                    (self.log)(&format!("{error}; trying again"));
                }
                (last.logged, last.call) = (Some(error.clone()), Some(error));
                Happening::Unreachable
            }
        }
    }

    fn fetch(&mut self, part: PartRef, last: &mut Failure) -> Result<Happening, AgentError> {
        if self.cache.get(part.hash).is_some() {
            return Ok(Happening::Fetched);
        }
        match self.link.blob(part, self.workshop.spec()) {
            Ok(bytes) => {
                self.cache.put(part.hash, &bytes)?;
                Ok(Happening::Fetched)
            }
            Err(error) => Ok(self.told(Err(error), last, |()| Happening::Fetched)),
        }
    }

    /// The parts a task names, if all are still in the cache.
    fn parts(&self, refs: &[PartRef]) -> Option<Vec<Arc<[f32]>>> {
        let values = |part: &PartRef| part_values(&self.cache.get(part.hash)?).ok().map(Arc::from);
        refs.iter().map(values).collect()
    }

    fn fit(&mut self, task: &Task) -> Result<Happening, AgentError> {
        let samples = self.workshop.trainer(task.seed)?.samples(Split::Train);
        if let Some(why) = self.objection(task, samples) {
            return Ok(Happening::CannotTrain(why));
        }
        // Something removed a part since it was fetched: ask again.
        let Some(parts) = self.parts(&task.parts) else { return Ok(Happening::Refused(Reject::NotYours)) };
        (self.log)(&format!("round {}: training {} epochs on {samples} samples", task.round, task.epochs));
        let started = Instant::now();
        let place = Place::of(self.workshop);
        let trainer = self.workshop.trainer_for(task.seed, task.update)?;
        let mode = trainer.mode();
        match self.store.record().personal.fit(task, parts, &place, trainer) {
            Ok((mut next, loss)) => {
                let took = started.elapsed();
                next.pace_ms = took.as_secs_f32() * 1e3 / (samples.max(1) as f32 * task.epochs.max(1) as f32);
                (self.log)(&trained(task, mode, took, loss, &next));
                let pending = next.pending.clone();
                self.remember(next)?;
                Ok(pending.map_or(Happening::CannotTrain(Declined::CannotTrain), Happening::Fitted))
            }
            Err(error) => {
                (self.log)(&format!("round {}: could not train: {error}", task.round));
                Ok(Happening::CannotTrain(Declined::CannotTrain))
            }
        }
    }

    fn adopt(&mut self, offer: &Adopt) -> Result<Happening, AgentError> {
        let Some(parts) = self.parts(&offer.parts) else { return Ok(Happening::Refused(Reject::NotYours)) };
        let started = Instant::now();
        let place = Place::of(self.workshop);
        match self.store.record().personal.adopt(offer, parts, &place, self.workshop.trainer(offer.seed)?) {
            Ok(next) => {
                let took = started.elapsed().as_secs_f32();
                (self.log)(&format!(
                    "model {}: taken over and adapted to this board in {took:.1} s",
                    offer.version
                ));
                self.remember(next)?;
                Ok(Happening::Adopted)
            }
            Err(source) => Err(AgentError::Adopt { version: offer.version, source }),
        }
    }

    fn remember(&mut self, next: Personal) -> Result<(), StoreError> {
        let heard = self.link.clock().seconds();
        self.store.update(|r| (r.personal, r.host_time) = (next, heard))
    }

    /// Why this board can't afford the task, by what it measured so far.
    fn objection(&self, task: &Task, samples: usize) -> Option<Declined> {
        let minutes = self.store.record().personal.pace_ms * samples as f32 * task.epochs as f32 / 60_000.0;
        // Shared parts, the model, two states of the method, the update; gradient and momentum of what is trained.
        let (spec, mode) = (self.workshop.spec(), self.workshop.update());
        let trained = mode.at_most(task.update, spec).mask(spec).count(spec);
        let memory = 4 * (spec.len() * (task.parts.len() + 4) + 2 * trained) as u64;
        let mib = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        match () {
            () if minutes > self.means.minutes as f32 => {
                Some(Declined::Minutes { asked: minutes.ceil() as u32, allowed: self.means.minutes as u32 })
            }
            () if memory > self.means.memory => {
                Some(Declined::Memory { asked: mib(memory), allowed: mib(self.means.memory) })
            }
            () => None,
        }
    }
}

/// What went wrong last, so that it is said once.
#[derive(Debug, Default)]
struct Failure {
    logged: Option<CallError>,
    call: Option<CallError>,
    waiting: Option<Why>,
}
