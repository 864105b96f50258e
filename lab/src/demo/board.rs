//! Real boards: what `edge-client enroll` and `edge-client run` do, in a thread or a process of their own.
use anyhow::Context;
use edge_client::agent::{Agent, Means, Until, Uptime};
use edge_client::enrolment;
use edge_client::personal::Personal;
use edge_client::store::{Identity, Membership, Store};
use edge_client::train::Workshop;
use edge_client::transport::{Address, HostClock, Https, Link, Trust};
use models::data::Samples;
use models::fed::Disclosure;
use models::id::ClientId;
use models::nn::arch;
use models::round::Ceilings;
use models::wire::Token;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest silence of the host.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of shared parts that a board keeps.
const CACHE: u64 = 64 << 20;
/// What a demonstration's board may take: enough for any of its tasks.
const MEANS: Means = Means { minutes: 60, memory: 4 << 30 };

/// A board as the demonstration knows it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// Its private directory.
    pub(super) dir: PathBuf,
    /// Where the host is.
    pub(super) host: String,
    /// The most that it lets out.
    pub(super) allow: Disclosure,
}

impl Seat {
    /// Enrols by a one-time token; the key is made here.
    pub(super) fn enroll(&self, token: &Token) -> anyhow::Result<ClientId> {
        let mut store = Store::open(&self.dir)?;
        enrolment::prepare(&mut store, &self.host, &self.name())?;
        let mut link = self.link(&Trust::Pin(token.authority), HostClock::new(0))?;
        Ok(enrolment::enroll(&mut store, &mut link, token, &mut |_| ())?)
    }

    /// Takes part on these samples until training is over and the final model is adapted.
    pub(super) fn run(&self, samples: Samples) -> anyhow::Result<Personal> {
        let mut store = Store::open(&self.dir)?;
        let (identity, member) = store.record().enrolled(&self.dir)?;
        let client = member.client;
        let mut link = self.link(&member_of(identity, member), HostClock::new(store.record().host_time))?;
        let card = link.model()?;
        let network = arch::build(&card)?;
        samples.check(card.input, &card.labels)?;
        store.update(|record| record.model = Some(card))?;
        let mut workshop = Workshop::new(network, samples, client, NonZeroUsize::MIN)?;
        let ceilings = Ceilings { allow: self.allow, ..Ceilings::default() };
        let cache = store.blobs(CACHE);
        let mut agent = Agent {
            store: &mut store,
            link: &mut link,
            cache,
            workshop: &mut workshop,
            ceilings,
            means: MEANS,
            clock: &Uptime::default(),
            log: &mut |_| {},
        };
        agent.run(Until::Finished, client.0).with_context(|| format!("board {client}"))?;
        Ok(store.record().personal.clone())
    }

    fn link(&self, trust: &Trust, clock: HostClock) -> anyhow::Result<Link> {
        let address: Address = self.host.parse()?;
        let https = Https::new(address, trust, &clock, PATIENCE)?;
        Ok(Link::new(Box::new(https), clock))
    }

    fn name(&self) -> String {
        Path::new(&self.dir).file_name().map_or_else(|| "board".into(), |n| n.to_string_lossy().into_owned())
    }
}

fn member_of(identity: &Identity, member: &Membership) -> Trust {
    Trust::Member {
        authority: member.authority.clone(),
        certificate: member.certificate.clone(),
        key: identity.key.clone(),
    }
}
