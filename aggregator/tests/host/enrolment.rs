use crate::board::{Board, connect, enroll, home, key, serve, settings, tls, token};
use aggregator::ledger::{Ledger, Standing};
use aggregator::pki::fingerprint_of;
use models::wire::{Answer, Reject, Token};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_one_key_in_and_nothing_else_does() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let (at, authority) = (host.address(), home.dir.authority().unwrap().certificate().clone());
    let (_, request) = key();
    let token = token(&home).await;
    assert_eq!(Some(token.authority), fingerprint_of(&authority), "the token pins the authority");

    let garbage = Token { secret: [7; 16], ..token.clone() };
    assert_eq!(enroll(at, &authority, &garbage, &request).await.unwrap().unwrap_err(), Reject::TokenUnknown);
    let expired = home.dir.token(None, Duration::ZERO).await.unwrap();
    assert_eq!(enroll(at, &authority, &expired, &request).await.unwrap().unwrap_err(), Reject::TokenExpired);
    assert_eq!(
        enroll(at, &authority, &token, &[0x30, 3, 1, 2, 3]).await.unwrap().unwrap_err(),
        Reject::BadRequest
    );

    let first = enroll(at, &authority, &token, &request).await.unwrap().unwrap();
    let again = enroll(at, &authority, &token, &request).await.unwrap().unwrap();
    assert_eq!(first.client, again.client, "a lost answer can be asked for again");
    assert_eq!(enroll(at, &authority, &token, &key().1).await.unwrap().unwrap_err(), Reject::TokenUsed);
    host.shutdown().await.unwrap();

    let devices = Ledger::devices(&home.dir.ledger().await.unwrap()).await.unwrap();
    assert_eq!(
        (devices.len(), devices[0].name.as_str()),
        (1, "te?st"),
        "no escape sequence gets into a name"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_known_certificate_only_enrolment_answers() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let authority = home.dir.authority().unwrap();
    let stranger =
        Board { tls: tls(authority.certificate(), None), ..Board::join(&home, host.address()).await };
    assert_eq!(stranger.poll(host.address(), None).await.unwrap().unwrap_err(), Reject::UnknownDevice);

    // Signed by the right authority, but never enrolled.
    let (key, request) = key();
    let foreign = aggregator::pki::BoardKey::from_request(&request).unwrap();
    let certificate = authority.certify(&foreign, models::id::ClientId(9), aggregator::clock::now()).unwrap();
    let own = (certificate, key.serialize_der().try_into().unwrap());
    let stranger = Board { tls: tls(authority.certificate(), Some(own)), ..stranger };
    assert_eq!(stranger.poll(host.address(), None).await.unwrap().unwrap_err(), Reject::UnknownDevice);

    // Signed by another authority: TLS itself refuses.
    let other = crate::board::home(&settings()).await;
    let other_host = serve(&other).await;
    let board = Board::join(&other, other_host.address()).await;
    assert!(board.poll(host.address(), None).await.is_err(), "neither side accepts the other's authority");
    host.shutdown().await.unwrap();
    other_host.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_board_is_refused_at_once_and_a_quarantined_one_waits() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let (one, two) = (Board::join(&home, host.address()).await, Board::join(&home, host.address()).await);
    let ledger = home.dir.ledger().await.unwrap();
    Ledger::set_standing(&ledger, one.id, Standing::Revoked).await.unwrap();
    Ledger::set_standing(&ledger, two.id, Standing::Quarantined).await.unwrap();
    assert_eq!(one.poll(host.address(), None).await.unwrap().unwrap_err(), Reject::Revoked);
    assert!(matches!(two.poll(host.address(), None).await.unwrap(), Ok(Answer::Wait(_))));
    assert_eq!(host.status().await.unwrap().live, 0, "neither counts as a board that could be picked");
    host.shutdown().await.unwrap();
    assert_eq!(Ledger::refusals(&ledger, one.id).await.unwrap(), [("revoked".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leaf_needs_nothing_from_boards() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let board = Board::join(&home, host.address()).await;
    let seen = async |at| {
        let stream = connect(at, board.tls.clone()).await.unwrap();
        fingerprint_of(&stream.get_ref().1.peer_certificates().unwrap()[0])
    };
    let before = seen(host.address()).await;
    host.shutdown().await.unwrap();
    home.dir.authority().unwrap().renew_leaf(&[], aggregator::clock::now()).unwrap();
    let host = serve(&home).await;
    assert_ne!(seen(host.address()).await, before);
    assert!(board.poll(host.address(), None).await.unwrap().is_ok());
    host.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_1_2_is_not_spoken_and_one_process_has_the_directory() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let second = aggregator::server::Server::start(&home.dir, Some(crate::board::LISTEN)).await;
    assert!(matches!(
        second,
        Err(aggregator::server::ServeError::Dir(aggregator::dir::DirError::Busy { .. }))
    ));
    // A ClientHello that offers TLS 1.2 only.
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut hello = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    hello.extend([0; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    let mut stream = tokio::net::TcpStream::connect(host.address()).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    assert_eq!(reply.first(), Some(&21), "an alert, and nothing else");
    host.shutdown().await.unwrap();
}
