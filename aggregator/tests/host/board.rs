//! A board for tests: raw HTTP over TLS, so that it can be as rude as it likes. Its "training" is a fixed function.
use aggregator::config::{MethodSettings, ModelSettings, Settings};
use aggregator::dir::HostDir;
use aggregator::server::{Handle, Server};
use models::fed::{Extent, Outgoing, Start};
use models::id::{ClientId, Hash};
use models::params::ModelSpec;
use models::params::UpdateMode;
use models::wire::{
    Answer, Bytes, EnrollRequest, Enrolled, Envelope, Method, Name, Poll, Receipt, Reject, Session, Task,
    Token, from_bytes, seal_update, submit_body, to_bytes,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A small host: three boards, two rounds, no waiting.
pub(crate) fn settings() -> Settings {
    let labels = vec!["cat".into(), "dog".into()];
    let mut settings = Settings {
        model: ModelSettings { arch: "mlp".into(), input: [1, 2, 2], labels, ..ModelSettings::default() },
        method: MethodSettings { name: "fedavg".into(), ..MethodSettings::default() },
        ..Settings::default()
    };
    let rounds = &mut settings.rounds;
    (rounds.rounds, rounds.min_boards, rounds.participation, rounds.poll_ms, rounds.retry_ms) =
        (2, 3, 0.6, 5, 5);
    settings
}

pub(crate) struct Home {
    pub(crate) dir: HostDir,
    _temporary: tempfile::TempDir,
}

pub(crate) async fn home(settings: &Settings) -> Home {
    let temporary = tempfile::tempdir().unwrap();
    let dir = HostDir::create(&temporary.path().join("fleet"), settings, None).await.unwrap();
    Home { dir, _temporary: temporary }
}

pub(crate) async fn serve(home: &Home) -> Handle {
    Server::start(&home.dir, Some(LISTEN)).await.unwrap()
}

pub(crate) async fn token(home: &Home) -> Token {
    home.dir.token(Some("test".into()), Duration::from_secs(60)).await.unwrap()
}

/// TLS as a client speaks it, trusting `authority`, with or without a certificate.
pub(crate) fn tls(
    authority: &CertificateDer<'static>,
    own: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let builder = builder.with_root_certificates(roots);
    Arc::new(match own {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    })
}

pub(crate) async fn connect(at: SocketAddr, tls: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(models::wire::HOST_NAME).unwrap();
    TlsConnector::from(tls).connect(name, TcpStream::connect(at).await?).await
}

/// One exchange on a connection of its own.
pub(crate) async fn exchange(
    at: SocketAddr,
    tls: &Arc<ClientConfig>,
    head: &str,
    body: &[u8],
) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = connect(at, Arc::clone(tls)).await?;
    stream
        .write_all(
            format!("{head}\r\nhost: {}\r\nconnection: close\r\n\r\n", models::wire::HOST_NAME).as_bytes(),
        )
        .await?;
    // The host may answer and close before it has read everything: its answer still counts.
    let _ = stream.write_all(body).await;
    let _ = stream.flush().await;
    answer(&mut stream).await
}

/// Reads an answer to its end.
pub(crate) async fn answer(stream: &mut TlsStream<TcpStream>) -> io::Result<(u16, Vec<u8>)> {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes).await;
    let split = bytes.windows(4).position(|w| w == b"\r\n\r\n");
    let Some(split) = split else {
        return Err(read.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
    };
    let head = String::from_utf8_lossy(&bytes[..split]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let body = bytes[split + 4..].to_vec();
    if length.is_some_and(|length| length != body.len()) {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok((status, body))
    }
}

/// What came of a request: an answer, a named refusal, or no host.
pub(crate) type Told<T> = io::Result<Result<T, Reject>>;

fn told<T: DeserializeOwned>((status, body): (u16, Vec<u8>)) -> Result<T, Reject> {
    match status {
        200 => Ok(from_bytes::<Envelope<T>>(&body).unwrap().open().unwrap()),
        _ => Err(from_bytes::<Envelope<Reject>>(&body).unwrap().open().unwrap()),
    }
}

pub(crate) struct Board {
    pub(crate) id: ClientId,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) session: Session,
    pub(crate) model: Option<Vec<Hash>>,
}

/// A signing request, and the key it is for.
pub(crate) fn key() -> (rcgen::KeyPair, Vec<u8>) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let request =
        rcgen::CertificateParams::new(Vec::new()).unwrap().serialize_request(&key).unwrap().der().to_vec();
    (key, request)
}

pub(crate) async fn enroll(
    at: SocketAddr,
    authority: &CertificateDer<'static>,
    token: &Token,
    request: &[u8],
) -> Told<Enrolled> {
    let wish = EnrollRequest {
        secret: Bytes::from_slice(&token.secret).unwrap(),
        request: Bytes::from_slice(request).unwrap(),
        name: Name::try_from("te\u{1b}st").unwrap(),
    };
    say(at, &tls(authority, None), "/v1/enroll", &wish).await
}

pub(crate) async fn say<T: Serialize, A: DeserializeOwned>(
    at: SocketAddr,
    tls: &Arc<ClientConfig>,
    path: &str,
    message: &T,
) -> Told<A> {
    let body = to_bytes(&Envelope::new(message)).unwrap();
    send(at, tls, Method::Post, path, &body).await
}

pub(crate) async fn send<A: DeserializeOwned>(
    at: SocketAddr,
    tls: &Arc<ClientConfig>,
    method: Method,
    path: &str,
    body: &[u8],
) -> Told<A> {
    let verb = match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
    };
    exchange(at, tls, &format!("{verb} {path} HTTP/1.1\r\ncontent-length: {}", body.len()), body)
        .await
        .map(told)
}

impl Board {
    pub(crate) fn new(enrolled: &Enrolled, key: &rcgen::KeyPair) -> Self {
        let authority = CertificateDer::from(enrolled.authority.to_vec());
        let certificate = CertificateDer::from(enrolled.certificate.to_vec());
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let session = Session { epoch: 1, nonce: enrolled.client.0 };
        Self { id: enrolled.client, tls: tls(&authority, Some((certificate, key))), session, model: None }
    }

    pub(crate) async fn join(home: &Home, at: SocketAddr) -> Self {
        let (key, request) = key();
        let authority = home.dir.authority().unwrap().certificate().clone();
        let enrolled = enroll(at, &authority, &token(home).await, &request).await.unwrap().unwrap();
        Self::new(&enrolled, &key)
    }

    pub(crate) async fn poll(&self, at: SocketAddr, held: Option<u32>) -> Told<Answer> {
        say(at, &self.tls, "/v1/poll", &Poll { session: self.session, held, update: UpdateMode::Full }).await
    }

    pub(crate) async fn submit(&self, at: SocketAddr, sealed: &[u8]) -> Told<Receipt> {
        send(at, &self.tls, Method::Put, "/v1/update", &submit_body(self.session, sealed)).await
    }

    pub(crate) async fn fetch(&self, at: SocketAddr, hash: Hash) -> io::Result<Result<Vec<u8>, Reject>> {
        let (status, body) = exchange(at, &self.tls, &format!("GET /v1/blob/{hash} HTTP/1.1"), &[]).await?;
        Ok(if status == 200 { Ok(body) } else { told::<()>((status, body)).map(|()| Vec::new()) })
    }

    /// The update of this board for a task: a function of board and round alone.
    pub(crate) fn sealed(&self, task: &Task, spec: &ModelSpec) -> Vec<u8> {
        let value =
            |i: usize| ((i as u32 * 31 + self.id.0 * 7 + task.round.0 * 13) % 17) as f32 * 0.01 - 0.08;
        let values = (0..Extent::Model.len(spec)).map(value).collect();
        let out = Outgoing::from_wire(Extent::Model, values, 10 + self.id.0, Start::Global, Vec::new());
        seal_update(task.round, task.codec, spec, &out).unwrap()
    }

    /// Polls once and does what is asked; true once it has the final model.
    pub(crate) async fn step(&mut self, at: SocketAddr, spec: &ModelSpec) -> io::Result<bool> {
        match self.poll(at, None).await?.unwrap() {
            Answer::Task(task) => {
                for part in &task.parts {
                    self.check(at, part.hash).await?;
                }
                let receipt = self.submit(at, &self.sealed(&task, spec)).await?;
                assert!(matches!(receipt, Ok(Receipt::Accepted | Receipt::AlreadyAccepted)), "{receipt:?}");
                Ok(false)
            }
            Answer::Adopt(adopt) => {
                for part in &adopt.parts {
                    self.check(at, part.hash).await?;
                }
                self.model = Some(adopt.parts.iter().map(|p| p.hash).collect());
                Ok(true)
            }
            Answer::Wait(_) => Ok(false),
        }
    }

    async fn check(&self, at: SocketAddr, hash: Hash) -> io::Result<()> {
        let part = self.fetch(at, hash).await?.unwrap();
        assert_eq!(Hash::of(&part), hash);
        Ok(())
    }
}
