//! Typed methods as bytes: the only glue between methods and the machines that run them.
//!
//! States, tasks and hyper-parameters are postcard; updates keep their flat form [`Outgoing`]. A shell that has
//! hyper-parameters in another format parses them typed, by [`with_method`].
use super::{
    Disclosure, Down, Extent, FedError, Host, Method, Outgoing, Plan, Predictor, Replies, Site, Uplink,
    conditional, cpct, fedavg, fedper, fedprism, local, pfedkdh,
};
use crate::id::ClientId;
use crate::nn::Trainer;
use crate::params::{ModelSpec, Params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a board's half of a round gives, as bytes.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Private state to keep.
    pub client: Vec<u8>,
    /// What leaves.
    pub up: Outgoing,
    /// Mean training loss of the last epoch, for the board's own log.
    pub loss: f64,
}

/// A host's state, decoded once to plan for many boards.
pub trait Published: Send + Sync + std::fmt::Debug {
    /// What all boards share, in a fixed order.
    fn parts(&self) -> Vec<(Extent, Vec<f32>)>;
    /// What this board shall train on.
    fn configure(&self, to: ClientId) -> Result<Plan<Vec<u8>>, FedError>;
    /// What this board, in no cohort or joined late, shall take over.
    fn offer(&self, to: ClientId) -> Result<Plan<Vec<u8>>, FedError>;
}

/// A method whose hyper-parameters, states and tasks are bytes.
pub trait AnyMethod: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its default hyper-parameters.
    fn default_hyper(&self) -> Result<Vec<u8>, FedError>;
    /// Refuses hyper-parameters that can't be read or are out of range.
    fn check(&self, hyper: &[u8]) -> Result<(), FedError>;
    /// What it discloses under these hyper-parameters.
    fn discloses(&self, hyper: &[u8]) -> Result<Disclosure, FedError>;
    /// What an update covers, and how many values of a prototype it may carry at most.
    fn uplink(&self, hyper: &[u8], spec: &ModelSpec) -> Result<(Extent, usize), FedError>;

    /// Passes over a board's training samples that a round asks for.
    fn epochs(&self, hyper: &[u8]) -> Result<u32, FedError>;

    /// The host's state before the first round.
    fn open(&self, hyper: &[u8], init: Params, site: Site, host: &mut dyn Host) -> Result<Vec<u8>, FedError>;
    /// Decodes the host's state to plan with.
    fn publish(&self, hyper: &[u8], state: &[u8]) -> Result<Box<dyn Published>, FedError>;
    /// The host's next state.
    fn aggregate(
        &self,
        hyper: &[u8],
        state: &[u8],
        site: Site,
        replies: &mut dyn Replies<Outgoing>,
        host: &mut dyn Host,
        spec: &Arc<ModelSpec>,
    ) -> Result<Vec<u8>, FedError>;
    /// The state to publish once the last round is over.
    fn finish(
        &self,
        hyper: &[u8],
        state: &[u8],
        site: Site,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, FedError>;

    /// A board's state before it has seen anything.
    fn enroll(&self, hyper: &[u8], spec: &Arc<ModelSpec>) -> Result<Vec<u8>, FedError>;
    /// Trains for a round. The update covers what the trainer may change.
    fn fit(
        &self,
        hyper: &[u8],
        client: &[u8],
        down: Down<Vec<u8>>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Sent, FedError>;
    /// Takes a model over without training for the host.
    fn adopt(
        &self,
        hyper: &[u8],
        client: &[u8],
        down: Down<Vec<u8>>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Vec<u8>, FedError>;
    /// Makes the board right about its own world.
    fn adapt(
        &self,
        hyper: &[u8],
        client: &[u8],
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Vec<u8>, FedError>;
    /// How the board answers.
    fn predictor(&self, hyper: &[u8], client: &[u8], spec: &Arc<ModelSpec>) -> Result<Predictor, FedError>;

    /// [`Published::parts`] of a state.
    fn parts(&self, hyper: &[u8], state: &[u8]) -> Result<Vec<(Extent, Vec<f32>)>, FedError> {
        Ok(self.publish(hyper, state)?.parts())
    }
    /// [`Published::configure`] of a state.
    fn configure(&self, hyper: &[u8], state: &[u8], to: ClientId) -> Result<Plan<Vec<u8>>, FedError> {
        self.publish(hyper, state)?.configure(to)
    }
    /// [`Published::offer`] of a state.
    fn offer(&self, hyper: &[u8], state: &[u8], to: ClientId) -> Result<Plan<Vec<u8>>, FedError> {
        self.publish(hyper, state)?.offer(to)
    }
}

/// A job that needs the method's types.
pub trait MethodVisitor {
    /// What it gives.
    type Out;
    /// Does it for one method.
    fn visit<M: Method>(self) -> Self::Out;
}

/// A typed method behind [`AnyMethod`].
#[derive(Debug)]
struct Erased<M>(PhantomData<M>);

macro_rules! registry {
    ($($method:ty),+ $(,)?) => {
        /// Every method there is, by its name's order.
        pub static METHODS: &[&dyn AnyMethod] = &[$(&Erased::<$method>(PhantomData)),+];

        /// Does `visitor`'s job with the types of the method called `name`.
        ///
        /// # Errors
        /// [`FedError::UnknownMethod`].
        pub fn with_method<V: MethodVisitor>(name: &str, visitor: V) -> Result<V::Out, FedError> {
            $(if name == <$method>::NAME { return Ok(visitor.visit::<$method>()); })+
            Err(unknown(name))
        }
    };
}

registry!(
    conditional::Conditional,
    cpct::Cpct,
    fedavg::FedAvg,
    fedper::FedPer,
    fedprism::FedPrism,
    local::Local,
    pfedkdh::PFedKdh,
);

/// The method called `name`.
///
/// # Errors
/// [`FedError::UnknownMethod`].
///
/// ```
/// assert_eq!(models::fed::erased::method("fedavg")?.name(), "fedavg");
/// assert!(models::fed::erased::method("fedmagic").is_err());
/// # Ok::<(), models::fed::FedError>(())
/// ```
pub fn method(name: &str) -> Result<&'static dyn AnyMethod, FedError> {
    METHODS.iter().find(|m| m.name() == name).copied().ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> FedError {
    let known: Vec<&str> = METHODS.iter().map(|m| m.name()).collect();
    FedError::UnknownMethod { name: name.into(), known: known.join(", ") }
}

/// Postcard of `value`, in exactly as much memory as it takes: a board's state may be most of what the program has.
fn pack<M: Method>(what: &'static str, value: &impl Serialize) -> Result<Vec<u8>, FedError> {
    let size = postcard::experimental::serialized_size(value);
    let packed = size.and_then(|size| postcard::to_extend(value, Vec::with_capacity(size)));
    packed.map_err(|e| FedError::Decode { what, method: M::NAME, why: e.to_string() })
}

/// `bytes` as a value, with nothing left over.
fn unpack<M: Method, T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, FedError> {
    let broken = |why: String| FedError::Decode { what, method: M::NAME, why };
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(broken(format!("{} bytes are left over", rest.len()))),
        Err(e) => Err(broken(e.to_string())),
    }
}

/// Hyper-parameters, checked.
fn hyper<M: Method>(bytes: &[u8]) -> Result<M::Hyper, FedError> {
    let hyper: M::Hyper = unpack::<M, _>("hyper-parameters", bytes)?;
    M::check(&hyper)?;
    Ok(hyper)
}

fn server<M: Method>(bytes: &[u8]) -> Result<M::Server, FedError> {
    unpack::<M, _>("host state", bytes)
}

fn client<M: Method>(bytes: &[u8]) -> Result<M::Client, FedError> {
    unpack::<M, _>("board state", bytes)
}

fn down<M: Method>(down: Down<Vec<u8>>) -> Result<Down<M::Task>, FedError> {
    Ok(Down { parts: down.parts, task: unpack::<M, _>("task", &down.task)? })
}

#[derive(Debug)]
struct Open<M: Method> {
    hyper: M::Hyper,
    server: M::Server,
}

impl<M: Method> Open<M> {
    fn plan(plan: Plan<M::Task>) -> Result<Plan<Vec<u8>>, FedError> {
        Ok(Plan { parts: plan.parts, task: pack::<M>("task", &plan.task)? })
    }
}

impl<M: Method> Published for Open<M> {
    fn parts(&self) -> Vec<(Extent, Vec<f32>)> {
        M::parts(&self.hyper, &self.server).iter().map(|p| (p.extent, p.values.to_vec())).collect()
    }
    fn configure(&self, to: ClientId) -> Result<Plan<Vec<u8>>, FedError> {
        Self::plan(M::configure(&self.hyper, &self.server, to))
    }
    fn offer(&self, to: ClientId) -> Result<Plan<Vec<u8>>, FedError> {
        Self::plan(M::offer(&self.hyper, &self.server, to))
    }
}

/// Flat replies seen as a method's own type.
struct Typed<'a> {
    flat: &'a mut dyn Replies<Outgoing>,
    spec: &'a Arc<ModelSpec>,
}

impl<U: Uplink> Replies<U> for Typed<'_> {
    fn ids(&self) -> &[ClientId] {
        self.flat.ids()
    }
    fn visit(&mut self, id: ClientId, look: &mut dyn FnMut(&U)) -> Result<(), FedError> {
        let mut outcome = Ok(());
        let spec = self.spec;
        self.flat.visit(id, &mut |flat| match U::from_outgoing(flat, spec) {
            Ok(up) => look(&up),
            Err(e) => outcome = Err(FedError::Reply { client: id, why: e.to_string() }),
        })?;
        outcome
    }
}

impl<M: Method> AnyMethod for Erased<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn default_hyper(&self) -> Result<Vec<u8>, FedError> {
        pack::<M>("hyper-parameters", &M::Hyper::default())
    }
    fn check(&self, bytes: &[u8]) -> Result<(), FedError> {
        hyper::<M>(bytes).map(drop)
    }
    fn discloses(&self, bytes: &[u8]) -> Result<Disclosure, FedError> {
        Ok(M::discloses(&hyper::<M>(bytes)?))
    }
    fn uplink(&self, bytes: &[u8], spec: &ModelSpec) -> Result<(Extent, usize), FedError> {
        Ok(M::uplink(&hyper::<M>(bytes)?, spec))
    }
    fn epochs(&self, bytes: &[u8]) -> Result<u32, FedError> {
        Ok(M::epochs(&hyper::<M>(bytes)?))
    }
    fn open(&self, bytes: &[u8], init: Params, site: Site, host: &mut dyn Host) -> Result<Vec<u8>, FedError> {
        pack::<M>("host state", &M::open(&hyper::<M>(bytes)?, init, site, host)?)
    }
    fn publish(&self, bytes: &[u8], state: &[u8]) -> Result<Box<dyn Published>, FedError> {
        Ok(Box::new(Open::<M> { hyper: hyper::<M>(bytes)?, server: server::<M>(state)? }))
    }
    fn aggregate(
        &self,
        bytes: &[u8],
        state: &[u8],
        site: Site,
        replies: &mut dyn Replies<Outgoing>,
        host: &mut dyn Host,
        spec: &Arc<ModelSpec>,
    ) -> Result<Vec<u8>, FedError> {
        let mut typed = Typed { flat: replies, spec };
        let next = M::aggregate(&hyper::<M>(bytes)?, &server::<M>(state)?, site, &mut typed, host)?;
        pack::<M>("host state", &next)
    }
    fn finish(
        &self,
        bytes: &[u8],
        state: &[u8],
        site: Site,
        host: &mut dyn Host,
    ) -> Result<Vec<u8>, FedError> {
        pack::<M>("host state", &M::finish(&hyper::<M>(bytes)?, &server::<M>(state)?, site, host)?)
    }
    fn enroll(&self, bytes: &[u8], spec: &Arc<ModelSpec>) -> Result<Vec<u8>, FedError> {
        pack::<M>("board state", &M::enroll(&hyper::<M>(bytes)?, spec))
    }
    fn fit(
        &self,
        bytes: &[u8],
        state: &[u8],
        task: Down<Vec<u8>>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Sent, FedError> {
        let fitted = M::fit(&hyper::<M>(bytes)?, &client::<M>(state)?, down::<M>(task)?, site, trainer)?;
        let client = pack::<M>("board state", &fitted.client)?;
        let up = fitted.up.into_outgoing().trained_in(trainer.mode(), trainer.spec());
        Ok(Sent { client, up, loss: fitted.loss })
    }
    fn adopt(
        &self,
        bytes: &[u8],
        state: &[u8],
        task: Down<Vec<u8>>,
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Vec<u8>, FedError> {
        let next = M::adopt(&hyper::<M>(bytes)?, &client::<M>(state)?, down::<M>(task)?, site, trainer)?;
        pack::<M>("board state", &next)
    }
    fn adapt(
        &self,
        bytes: &[u8],
        state: &[u8],
        site: Site,
        trainer: &mut dyn Trainer,
    ) -> Result<Vec<u8>, FedError> {
        pack::<M>("board state", &M::adapt(&hyper::<M>(bytes)?, &client::<M>(state)?, site, trainer)?)
    }
    fn predictor(&self, bytes: &[u8], state: &[u8], spec: &Arc<ModelSpec>) -> Result<Predictor, FedError> {
        M::predictor(&hyper::<M>(bytes)?, &client::<M>(state)?, spec)
    }
}
