//! A board's half: the production participant, its steps done at once, training left to the pool.
use super::host::InMemoryHost;
use super::{Answering, AnyTrainer, FleetError, Recipe, Traffic};
use models::fed::erased::{AnyMethod, method};
use models::fed::{Disclosure, Down, Predictor, Site};
use models::id::{ClientId, RoundId};
use models::nn::{Limited, Trainer};
use models::params::UpdateMode;
use models::round::{Ceilings, Happening, Millis, Participant, Pending, Reply, Request, Step};
use models::wire::{Adopt, Envelope, Session, Task, Why, seal_update, to_bytes};
use std::sync::Arc;

/// One board.
pub(super) struct Member {
    /// Bytes so far, taking the final model over not counted.
    pub(super) traffic: Traffic,
    id: ClientId,
    participant: Participant,
    trainer: AnyTrainer,
    state: Vec<u8>,
    parts: Vec<Arc<[f32]>>,
    predictors: Vec<Predictor>,
}

/// What a board waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Blocked {
    /// Its own arithmetic: training.
    Fit(Box<Task>),
    /// Its own arithmetic: taking the model over.
    Adopt(Box<Adopt>),
    /// The time.
    Until(Millis),
    /// Nothing more: training is over.
    Done,
}

/// A bench sets no limits: its owner wants to see what a method does.
const UNLIMITED: Ceilings =
    Ceilings { allow: Disclosure::Samples, epochs: u32::MAX, bytes: u64::MAX, update: UpdateMode::Full };

fn discloses(name: &str, hyper: &[u8]) -> Option<Disclosure> {
    method(name).ok()?.discloses(hyper).ok()
}

impl Member {
    pub(super) fn new(id: ClientId, trainer: AnyTrainer, state: Vec<u8>) -> Self {
        let session = Session { epoch: 1, nonce: id.0 };
        let ceilings = Ceilings { update: trainer.mode(), ..UNLIMITED };
        let participant = Participant::new(ceilings, discloses, session, None, None);
        let traffic = Traffic::default();
        Self { traffic, id, participant, trainer, state, parts: Vec::new(), predictors: Vec::new() }
    }

    pub(super) fn answering(self) -> Answering {
        Answering { client: self.id, predictors: self.predictors }
    }

    /// Talks with the host until there is something to compute or to wait for.
    pub(super) fn talk(&mut self, host: &mut InMemoryHost) -> Result<Blocked, FleetError> {
        loop {
            let what = match self.participant.step(host.now) {
                Step::Poll(poll) => self.poll(host, &Request::Poll(poll), to_bytes(&Envelope::new(poll)))?,
                Step::Fetch(part) => {
                    let values = host.part(self.id, part)?;
                    self.traffic.down += 4 * values.len() as u64;
                    self.parts.push(values);
                    Happening::Fetched
                }
                Step::Submit(body) => {
                    self.traffic.up += body.len() as u64;
                    Happening::Received(host.submit(self.id, &body)?)
                }
                Step::Settle => Happening::Settled,
                Step::Fit(task) => return Ok(Blocked::Fit(task)),
                Step::Adopt(adopt) => return Ok(Blocked::Adopt(adopt)),
                Step::Sleep { why: Some(Why::Finished), .. } => return Ok(Blocked::Done),
                Step::Sleep { until, .. } => return Ok(Blocked::Until(until)),
                Step::Decline(decline) => return Err(FleetError::Declined { client: self.id, decline }),
                Step::Stop(why) => return Err(FleetError::Stopped { client: self.id, why }),
            };
            self.participant.handle(host.now, host.spec(), what);
        }
    }

    fn poll(
        &mut self,
        host: &mut InMemoryHost,
        request: &Request,
        sent: Result<Vec<u8>, models::wire::Reject>,
    ) -> Result<Happening, FleetError> {
        self.traffic.up += sent.map_err(FleetError::Refused)?.len() as u64;
        match host.ask(self.id, request)? {
            Ok(Reply::Answer(answer)) => {
                let received = to_bytes(&Envelope::new(answer.clone())).map_err(FleetError::Refused)?;
                self.traffic.down += received.len() as u64;
                Ok(Happening::Answered(Box::new(answer)))
            }
            Ok(Reply::Receipt(receipt)) => Ok(Happening::Received(receipt)),
            Err(reject) => Err(FleetError::Refused(reject)),
        }
    }

    /// Does the arithmetic it is blocked on.
    pub(super) fn work(
        &mut self,
        now: Millis,
        method: &dyn AnyMethod,
        recipe: &Recipe,
        job: Blocked,
    ) -> Result<(), FleetError> {
        let spec = Arc::clone(self.trainer.spec());
        let what = match job {
            Blocked::Fit(task) => Happening::Fitted(self.fit(method, &task)?),
            Blocked::Adopt(adopt) => {
                self.adopt(method, recipe, &adopt)?;
                Happening::Adopted
            }
            Blocked::Until(_) | Blocked::Done => return Ok(()),
        };
        self.participant.handle(now, &spec, what);
        Ok(())
    }

    fn fit(&mut self, method: &dyn AnyMethod, task: &Task) -> Result<Pending, FleetError> {
        let down = Down { parts: std::mem::take(&mut self.parts), task: task.body.to_vec() };
        let site = Site { seed: task.seed, round: task.round, client: self.id };
        let spec = Arc::clone(self.trainer.spec());
        let mode = self.trainer.mode().at_most(task.update, &spec);
        let mut trainer = Limited::new(&mut *self.trainer, mode);
        let sent = method.fit(&task.hyper, &self.state, down, site, &mut trainer)?;
        let sealed = seal_update(task.round, task.codec, &spec, &sent.up);
        self.state = sent.client;
        Ok(Pending { round: task.round, sealed: sealed.map_err(FleetError::Refused)? })
    }

    fn adopt(&mut self, method: &dyn AnyMethod, recipe: &Recipe, adopt: &Adopt) -> Result<(), FleetError> {
        let bytes: usize = self.parts.iter().map(|p| 4 * p.len()).sum();
        self.traffic.down -= bytes as u64;
        let down = Down { parts: std::mem::take(&mut self.parts), task: adopt.body.to_vec() };
        let site = Site { seed: adopt.seed, round: RoundId(adopt.version), client: self.id };
        self.state = method.adopt(&adopt.hyper, &self.state, down, site, &mut *self.trainer)?;
        let spec = Arc::clone(self.trainer.spec());
        for hyper in &recipe.answers {
            let adapted = method.adapt(hyper, &self.state, site, &mut *self.trainer)?;
            self.predictors.push(method.predictor(hyper, &adapted, &spec)?);
        }
        Ok(())
    }
}
