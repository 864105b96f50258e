//! The host's half: the production coordinator, its effects done at once, its blobs in memory.
use super::board::Member;
use super::{AnyTrainer, FleetError, Recipe};
use models::fed::erased::AnyMethod;
use models::fed::{FedError, Host, Outgoing, Plan, Replies, Site};
use models::id::{AUXILIARY, ClientId, Hash, RoundId};
use models::nn::Trainer;
use models::params::{ModelSpec, Params};
use models::round::{
    Briefing, Charter, Completion, Coordinator, Effect, Millis, Policy, Published, Reply, Request,
};
use models::wire::{self, Bytes, Name, PartRef, Receipt, Reject};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The host of a fleet in memory.
pub(super) struct InMemoryHost {
    /// The virtual time.
    pub(super) now: Millis,
    coordinator: Coordinator,
    method: &'static dyn AnyMethod,
    hyper: Vec<u8>,
    policy: Policy,
    init: Params,
    everyone: Vec<ClientId>,
    auxiliary: Auxiliary,
    state: Vec<u8>,
    parts: BTreeMap<Hash, Arc<[f32]>>,
    updates: BTreeMap<Hash, Outgoing>,
}

/// What the host has beside the replies.
struct Auxiliary {
    trainer: Option<AnyTrainer>,
    rounds: u32,
}

impl Host for Auxiliary {
    fn auxiliary(&mut self) -> Option<&mut dyn Trainer> {
        self.trainer.as_mut().map(|t| &mut **t as &mut dyn Trainer)
    }
    fn rounds(&self) -> u32 {
        self.rounds
    }
}

/// Shared parts and the encoded rest.
type Encoded = (Vec<u16>, Vec<u8>);

/// What each board is told under one state: its task and its offer.
#[derive(Debug)]
struct Plans(BTreeMap<ClientId, [Encoded; 2]>);

impl Briefing for Plans {
    fn task(&self, to: ClientId) -> (Vec<u16>, Vec<u8>) {
        self.0[&to][0].clone()
    }
    fn offer(&self, to: ClientId) -> (Vec<u16>, Vec<u8>) {
        self.0[&to][1].clone()
    }
}

/// A round's replies, decoded.
struct Decoded<'a> {
    ids: Vec<ClientId>,
    updates: Vec<&'a Outgoing>,
}

impl Replies<Outgoing> for Decoded<'_> {
    fn ids(&self) -> &[ClientId] {
        &self.ids
    }
    fn visit(&mut self, id: ClientId, look: &mut dyn FnMut(&Outgoing)) -> Result<(), FedError> {
        let missing = || FedError::Reply { client: id, why: "it is not of this round".into() };
        let at = self.ids.binary_search(&id).map_err(|_| missing())?;
        look(self.updates[at]);
        Ok(())
    }
}

impl InMemoryHost {
    pub(super) fn new(
        method: &'static dyn AnyMethod,
        recipe: &Recipe,
        policy: Policy,
        init: Params,
        everyone: Vec<ClientId>,
        auxiliary: Option<AnyTrainer>,
    ) -> Result<Self, FleetError> {
        let charter = Charter {
            method: Name::try_from(recipe.method).map_err(|_| FleetError::Refused(Reject::Internal))?,
            hyper: Bytes::from_slice(&recipe.hyper)
                .map_err(|_| FleetError::Hyper { got: recipe.hyper.len() })?,
            spec: Arc::clone(init.spec()),
            extent: method.uplink(&recipe.hyper, init.spec())?.0,
            epochs: method.epochs(&recipe.hyper)?,
        };
        let mut host = Self {
            now: Millis(1),
            coordinator: Coordinator::new(policy.clone(), charter),
            method,
            hyper: recipe.hyper.clone(),
            auxiliary: Auxiliary { trainer: auxiliary, rounds: policy.rounds },
            policy,
            init,
            everyone,
            state: Vec::new(),
            parts: BTreeMap::new(),
            updates: BTreeMap::new(),
        };
        host.effects()?;
        Ok(host)
    }

    pub(super) fn spec(&self) -> &Arc<ModelSpec> {
        self.init.spec()
    }

    /// The open or next round.
    pub(super) fn round(&self) -> u32 {
        self.coordinator.status(self.now).round.0
    }

    /// Enrols boards.
    pub(super) fn welcome(&mut self, crew: Vec<(ClientId, AnyTrainer)>) -> Result<Vec<Member>, FleetError> {
        crew.into_iter()
            .map(|(id, trainer)| {
                self.coordinator.enroll(id);
                let state = self.method.enroll(&self.hyper, self.spec())?;
                Ok(Member::new(id, trainer, state))
            })
            .collect()
    }

    /// Handles a request and does what follows from it.
    pub(super) fn ask(
        &mut self,
        from: ClientId,
        request: &Request,
    ) -> Result<Result<Reply, Reject>, FleetError> {
        let reply = self.coordinator.handle(self.now, from, request).reply;
        self.effects()?;
        Ok(reply)
    }

    /// Takes an update as it came over the wire.
    pub(super) fn submit(&mut self, from: ClientId, body: &[u8]) -> Result<Receipt, FleetError> {
        let (session, sealed) = wire::split_submit(body).map_err(FleetError::Refused)?;
        let (header, update) = wire::open_update(sealed, self.spec()).map_err(FleetError::Refused)?;
        let hash = Hash::of(sealed);
        self.updates.insert(hash, update);
        match self.ask(from, &Request::Submit { session, round: header.round, update: hash })? {
            Ok(Reply::Receipt(receipt)) => Ok(receipt),
            Ok(Reply::Answer(_)) => Err(FleetError::Refused(Reject::Internal)),
            Err(reject) => Err(FleetError::Refused(reject)),
        }
    }

    /// A shared part, if this board may read it.
    pub(super) fn part(&self, client: ClientId, part: PartRef) -> Result<Arc<[f32]>, FleetError> {
        let values = self.parts.get(&part.hash).filter(|_| self.coordinator.may_read(client, part.hash));
        values.cloned().ok_or(FleetError::Refused(Reject::NotAsked))
    }

    fn effects(&mut self) -> Result<(), FleetError> {
        while let Some(effect) = self.coordinator.poll_effect() {
            self.state = self.compute(&effect)?;
            let done = self.publish()?;
            self.coordinator.complete(self.now, done);
        }
        Ok(())
    }

    /// The method's next state.
    fn compute(&mut self, effect: &Effect) -> Result<Vec<u8>, FleetError> {
        let at = |round| Site { seed: self.policy.seed, round, client: AUXILIARY };
        let host = &mut self.auxiliary;
        let (method, hyper, state) = (self.method, &self.hyper, &self.state);
        Ok(match effect {
            Effect::Prepare => method.open(hyper, self.init.clone(), at(RoundId(0)), host)?,
            Effect::Finish { .. } => method.finish(hyper, state, at(RoundId(self.policy.rounds)), host)?,
            Effect::Aggregate { round, replies, .. } => {
                let (ids, hashes): (Vec<_>, Vec<_>) = replies.iter().copied().unzip();
                let mut replies = Decoded { ids, updates: hashes.iter().map(|h| &self.updates[h]).collect() };
                let next =
                    method.aggregate(hyper, state, at(*round), &mut replies, host, self.init.spec())?;
                self.updates.clear();
                next
            }
        })
    }

    fn publish(&mut self) -> Result<Completion, FleetError> {
        let current = self.method.publish(&self.hyper, &self.state)?;
        self.parts.clear();
        let mut parts = Vec::new();
        for (extent, values) in current.parts() {
            let hash = Hash::of(&wire::part_bytes(&values));
            parts.push(PartRef { extent, hash });
            self.parts.insert(hash, values.into());
        }
        let flat = |plan: Plan<Vec<u8>>| (plan.parts, plan.task);
        let plan = |&id: &ClientId| Ok((id, [flat(current.configure(id)?), flat(current.offer(id)?)]));
        let briefing = Plans(self.everyone.iter().map(plan).collect::<Result<_, FedError>>()?);
        let published = Published { state: Hash::of(&self.state), parts };
        Ok(Completion::Done { published, briefing: Arc::new(briefing) })
    }
}
