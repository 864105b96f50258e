//! A published state, as the coordinator asks it.
use models::fed::erased::Published;
use models::fed::{FedError, Plan};
use models::id::ClientId;
use models::round::Briefing;

/// A decoded state of the method.
#[derive(Debug)]
pub(super) struct Told(Box<dyn Published>);

impl Told {
    pub(super) fn new(state: Box<dyn Published>) -> Self {
        Self(state)
    }
}

impl Briefing for Told {
    fn task(&self, to: ClientId) -> (Vec<u16>, Vec<u8>) {
        told(self.0.configure(to))
    }
    fn offer(&self, to: ClientId) -> (Vec<u16>, Vec<u8>) {
        told(self.0.offer(to))
    }
}

/// A plan that can't be encoded names nothing: the board's decoder refuses it by name, and the log says why.
fn told(plan: Result<Plan<Vec<u8>>, FedError>) -> (Vec<u16>, Vec<u8>) {
    match plan {
        Ok(Plan { parts, task }) => (parts, task),
        Err(error) => {
            tracing::error!(%error, "a board's plan can't be made");
            (Vec::new(), Vec::new())
        }
    }
}
