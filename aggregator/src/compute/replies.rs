//! A round's updates, read from their blobs one at a time.
use super::Workshop;
use crate::crash;
use models::fed::{FedError, Outgoing, Replies};
use models::id::{ClientId, Hash};
use models::wire::open_update;

/// Updates by the hash of their sealed bytes.
pub(super) struct BlobReplies<'a> {
    workshop: &'a Workshop,
    ids: Vec<ClientId>,
    updates: &'a [(ClientId, Hash)],
}

impl<'a> BlobReplies<'a> {
    /// `updates` are sorted by client, as the coordinator gives them.
    pub(super) fn new(workshop: &'a Workshop, updates: &'a [(ClientId, Hash)]) -> Self {
        Self { workshop, ids: updates.iter().map(|(id, _)| *id).collect(), updates }
    }

    fn read(&self, id: ClientId) -> Result<Outgoing, String> {
        let place = self
            .updates
            .binary_search_by_key(&id, |(id, _)| *id)
            .map_err(|_| "it has not replied".to_owned())?;
        let sealed = self.workshop.get(self.updates[place].1).map_err(|e| e.to_string())?;
        open_update(&sealed, &self.workshop.plan.spec).map(|(_, out)| out).map_err(|e| e.to_string())
    }
}

impl Replies<Outgoing> for BlobReplies<'_> {
    fn ids(&self) -> &[ClientId] {
        &self.ids
    }

    fn visit(&mut self, id: ClientId, look: &mut dyn FnMut(&Outgoing)) -> Result<(), FedError> {
        let update = self.read(id).map_err(|why| FedError::Reply { client: id, why })?;
        look(&update);
        crash::here("aggregate-middle");
        Ok(())
    }
}
