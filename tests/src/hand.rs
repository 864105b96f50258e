//! A board driven by hand, message by message, with the identity that the real program made and the production transport.
use crate::fleet::Board;
use crate::process::PATIENCE;
use edge_client::store::Store;
use edge_client::transport::{Call, CallError, HostClock, Https, Transport, Trust};
use models::fed::{Extent, Outgoing, Start};
use models::id::{Hash, RoundId};
use models::nn::arch;
use models::params::UpdateMode;
use models::params::{ModelCard, ModelSpec};
use models::wire::{
    Answer, Endpoint, Envelope, MESSAGE_CAP, Poll, Receipt, Reject, Session, Task, from_bytes, seal_update,
    submit_body, to_bytes,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Instant;

/// It.
#[derive(Debug)]
pub struct Hand {
    https: Https,
    /// Which life of the board this is.
    pub session: Session,
    /// The model.
    pub spec: Arc<ModelSpec>,
}

impl Hand {
    /// Speaks as this board, in a first session.
    ///
    /// # Panics
    /// If the board isn't enrolled.
    pub fn of(board: &Board) -> Self {
        let record = Store::peek(&board.dir).expect("a board's state");
        let (identity, member) = record.enrolled(&board.dir).expect("it is enrolled");
        let trust = Trust::Member {
            authority: member.authority.clone(),
            certificate: member.certificate.clone(),
            key: identity.key.clone(),
        };
        let session = Session { epoch: 1, nonce: member.client.0 };
        Self::speaking(&identity.host, &trust, session, record.model.as_ref().expect("it knows its model"))
    }

    /// Speaks as a stranger who knows where the host is and nothing else.
    ///
    /// # Panics
    /// If the board isn't enrolled.
    pub fn stranger(board: &Board) -> Self {
        let record = Store::peek(&board.dir).expect("a board's state");
        let (identity, member) = record.enrolled(&board.dir).expect("it is enrolled");
        let session = Session { epoch: 1, nonce: 0 };
        Self::speaking(
            &identity.host,
            &Trust::Pin(member.pin),
            session,
            record.model.as_ref().expect("a model"),
        )
    }

    fn speaking(host: &str, trust: &Trust, session: Session, card: &ModelCard) -> Self {
        let address = host.parse().expect("an address");
        let https =
            Https::new(address, trust, &HostClock::new(0), PATIENCE).expect("certificates that can be read");
        Self { https, session, spec: arch::build(card).expect("a network").1 }
    }

    /// Sends these bytes and reads the answer.
    ///
    /// # Errors
    /// The host's refusal.
    ///
    /// # Panics
    /// If the host doesn't answer.
    pub fn send(&mut self, endpoint: Endpoint, hash: Option<Hash>, body: &[u8]) -> Result<Vec<u8>, Reject> {
        match self.https.call(Call { endpoint, hash, body, cap: 1 << 24 }) {
            Ok(bytes) => Ok(bytes),
            Err(CallError::Refused(reject)) => Err(reject),
            Err(other) => panic!("{other}"),
        }
    }

    /// Says a message and hears one.
    ///
    /// # Errors
    /// The host's refusal.
    pub fn say<A: DeserializeOwned>(
        &mut self,
        endpoint: Endpoint,
        message: &impl Serialize,
    ) -> Result<A, Reject> {
        let body = to_bytes(&Envelope::new(message))?;
        debug_assert!(body.len() <= MESSAGE_CAP);
        from_bytes::<Envelope<A>>(&self.send(endpoint, None, &body)?)?.open()
    }

    /// Asks what to do.
    ///
    /// # Errors
    /// The host's refusal.
    pub fn poll(&mut self) -> Result<Answer, Reject> {
        let session = self.session;
        self.say(Endpoint::POLL, &Poll { session, held: None, update: UpdateMode::Full })
    }

    /// Asks until there is a task of this round.
    ///
    /// # Panics
    /// If there is none in time, or the host refuses.
    pub fn task(&mut self, round: u32) -> Task {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.poll() {
                Ok(Answer::Task(task)) if task.round == RoundId(round) => return task,
                Ok(_) => {}
                Err(reject) => panic!("{reject}"),
            }
        }
        panic!("no task of round {round}");
    }

    /// Sends an update.
    ///
    /// # Errors
    /// The host's refusal.
    pub fn submit(&mut self, sealed: &[u8]) -> Result<Receipt, Reject> {
        let body = submit_body(self.session, sealed);
        from_bytes::<Envelope<Receipt>>(&self.send(Endpoint::UPDATE, None, &body)?)?.open()
    }

    /// An update for `task` whose values are all `value`.
    ///
    /// # Panics
    /// If it can't be sealed.
    pub fn update(&self, task: &Task, extent: Extent, value: f32, samples: u32) -> Vec<u8> {
        self.update_of(task.round, task, extent, value, samples)
    }

    /// The same for another round.
    ///
    /// # Panics
    /// If it can't be sealed.
    pub fn update_of(
        &self,
        round: RoundId,
        task: &Task,
        extent: Extent,
        value: f32,
        samples: u32,
    ) -> Vec<u8> {
        let values = vec![value; extent.len(&self.spec)];
        let out = Outgoing::from_wire(extent, values, samples, Start::Global, Vec::new());
        seal_update(round, task.codec, &self.spec, &out).expect("a header that fits")
    }
}
