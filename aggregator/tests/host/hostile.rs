use crate::board::{Board, answer, connect, exchange, home, send, serve, settings};
use models::fed::{Extent, Outgoing, Start};
use models::id::{Hash, RoundId};
use models::wire::{Answer, Codec, Envelope, MESSAGE_CAP, Method, Receipt, Reject, from_bytes, seal_update};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

fn rejected((status, body): (u16, Vec<u8>)) -> (u16, Reject) {
    (status, from_bytes::<Envelope<Reject>>(&body).unwrap().open().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_long_is_refused_before_it_is_read() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let board = Board::join(&home, host.address()).await;
    let at = host.address();
    for (path, verb) in [("/v1/poll", "POST"), ("/v1/enroll", "POST"), ("/v1/update", "PUT")] {
        let head = format!("{verb} {path} HTTP/1.1\r\ncontent-length: 100000000000");
        let (status, reject) = rejected(exchange(at, &board.tls, &head, b"x").await.unwrap());
        assert!(status == 413 && matches!(reject, Reject::TooLarge { .. }), "{path}: {status} {reject}");
    }
    // Chunked, so that no length is stated.
    let chunk = vec![b'a'; 8192];
    let mut body = Vec::new();
    for _ in 0..=MESSAGE_CAP / chunk.len() {
        body.extend(format!("{:x}\r\n", chunk.len()).bytes().chain(chunk.iter().copied()).chain(*b"\r\n"));
    }
    let head = "POST /v1/poll HTTP/1.1\r\ntransfer-encoding: chunked";
    let (status, reject) = rejected(exchange(at, &board.tls, head, &body).await.unwrap());
    assert_eq!((status, reject), (413, Reject::TooLarge { limit: MESSAGE_CAP as u64 }));
    // A head without end.
    let endless = format!("GET /v1/model HTTP/1.1\r\nx: {}", "y".repeat(100_000));
    assert!(exchange(at, &board.tls, &endless, &[]).await.map_or(true, |(status, _)| status == 431));
    host.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_refused_by_name_and_counted() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let board = Board::join(&home, host.address()).await;
    let at = host.address();
    let garbage: [&[u8]; 6] =
        [b"", b"\0", &[0xff; 40], &[1, 0, 1, 0], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[0x88; 300]];
    for body in garbage {
        for (method, path) in [
            (Method::Post, "/v1/poll"),
            (Method::Post, "/v1/enroll"),
            (Method::Post, "/v1/decline"),
            (Method::Put, "/v1/update"),
        ] {
            let refused = send::<Receipt>(at, &board.tls, method, path, body).await.unwrap().unwrap_err();
            assert!(
                matches!(refused, Reject::Malformed | Reject::Version { .. }),
                "{path} {body:?}: {refused}"
            );
        }
    }
    for path in ["/v1/blob/zz", &format!("/v1/blob/{}", Hash::of(b"x")), "/v1/blob/..%2f..%2fpki"] {
        assert_eq!(
            send::<()>(at, &board.tls, Method::Get, path, &[]).await.unwrap().unwrap_err(),
            Reject::NotYours
        );
    }
    assert_eq!(
        send::<()>(at, &board.tls, Method::Get, "/etc/passwd", &[]).await.unwrap().unwrap_err(),
        Reject::NoSuchEndpoint
    );
    assert_eq!(
        send::<()>(at, &board.tls, Method::Get, "/v1/poll", &[]).await.unwrap().unwrap_err(),
        Reject::NoSuchEndpoint
    );
    host.shutdown().await.unwrap();
    let ledger = home.dir.ledger().await.unwrap();
    let counted = aggregator::ledger::Ledger::refusals(&ledger, board.id).await.unwrap();
    assert!(
        counted.contains(&("not_yours".into(), 3)) && counted.contains(&("no_such_endpoint".into(), 2)),
        "{counted:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_is_not_what_was_asked_never_reaches_the_store() {
    let mut small = settings();
    small.rounds.min_boards = 1;
    let home = home(&small).await;
    let host = serve(&home).await;
    let (at, spec) = (host.address(), host.plan().spec.clone());
    let board = Board::join(&home, at).await;
    let task = loop {
        if let Answer::Task(task) = board.poll(at, None).await.unwrap().unwrap() {
            break task;
        }
    };
    let seal = |extent: Extent, codec, value: f32, samples| {
        seal_update(
            RoundId(0),
            codec,
            &spec,
            &Outgoing::from_wire(extent, vec![value; extent.len(&spec)], samples, Start::Global, Vec::new()),
        )
        .unwrap()
    };
    let whole = Extent::Model;
    let cases = [
        (seal(Extent::Backbone, task.codec, 0.1, 5), "not_asked"),
        (seal(whole, Codec::Bf16, 0.1, 5), "not_asked"),
        (seal(whole, task.codec, f32::NAN, 5), "not_finite"),
        (seal(whole, task.codec, f32::INFINITY, 5), "not_finite"),
        (seal(whole, task.codec, 0.1, 0), "bad_weight"),
        (seal(whole, task.codec, 0.1, u32::MAX), "bad_weight"),
        (seal(whole, task.codec, 0.1, 5)[..100].to_vec(), "wrong_length"),
    ];
    for (sealed, expected) in &cases {
        let refused = board.submit(at, sealed).await.unwrap().unwrap_err();
        assert!(
            format!("{refused:?}").to_lowercase().starts_with(&expected.replace('_', "")),
            "{expected}: {refused:?}"
        );
    }
    assert_eq!(
        board.submit(at, &board.sealed(&task, &spec)).await.unwrap(),
        Ok(Receipt::Accepted),
        "the round goes on"
    );
    host.shutdown().await.unwrap();
    let blobs = home.dir.blobs().unwrap();
    for (sealed, _) in &cases {
        assert!(blobs.get(Hash::of(sealed), 1 << 20).await.is_err(), "nothing that was refused is kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_lose_their_place_and_others_are_served() {
    let mut strict = settings();
    (strict.server.message_seconds, strict.server.connections) = (1, 4);
    let home = home(&strict).await;
    let host = serve(&home).await;
    let board = Board::join(&home, host.address()).await;
    let at = host.address();
    let begun = Instant::now();
    // Never says hello; says half a head; says half a body.
    let silent = tokio::net::TcpStream::connect(at).await.unwrap();
    let mut half_head = connect(at, board.tls.clone()).await.unwrap();
    half_head.write_all(b"POST /v1/poll HT").await.unwrap();
    let mut half_body = connect(at, board.tls.clone()).await.unwrap();
    half_body.write_all(b"POST /v1/poll HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\nabc").await.unwrap();
    // The fourth place is still free, and soon all are.
    assert!(board.poll(at, None).await.unwrap().is_ok());
    let (status, reject) = rejected(answer(&mut half_body).await.unwrap());
    assert!(status == 503 && matches!(reject, Reject::Busy { .. }));
    assert!(answer(&mut half_head).await.map_or(true, |(status, _)| status == 408));
    drop(silent);
    for _ in 0..8 {
        assert!(board.poll(at, None).await.unwrap().is_ok());
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
    host.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_from_one_address_do_not_take_every_place() {
    let mut few = settings();
    few.server.guests = 3;
    let home = home(&few).await;
    let host = serve(&home).await;
    let at = host.address();
    let board = Board::join(&home, at).await;
    let mut boards = Vec::new();
    while boards.len() < 6 {
        boards.extend(connect(at, board.tls.clone()).await); // boards that stay don't count
    }
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(tokio::net::TcpStream::connect(at).await.unwrap());
    }
    while connect(at, board.tls.clone()).await.is_ok() {} // until the last of the three was taken in
    let begun = Instant::now();
    silent.clear();
    while board.poll(at, None).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the places of those who left aren't free");
    }
    host.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_board_does_not_take_every_place() {
    let mut few = settings();
    (few.server.connections, few.server.each) = (4, 2);
    let home = home(&few).await;
    let host = serve(&home).await;
    let at = host.address();
    let (greedy, other) = (Board::join(&home, at).await, Board::join(&home, at).await);
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(at, greedy.tls.clone()).await.unwrap();
        stream.write_all(b"POST /v1/poll HT").await.unwrap();
        kept.push(stream);
    }
    let begun = Instant::now();
    while greedy.poll(at, None).await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "a third connection of one board is served");
    }
    assert!(other.poll(at, None).await.unwrap().is_ok(), "others are served meanwhile");
    drop(kept);
    while greedy.poll(at, None).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the places of those that ended aren't free");
    }
    host.shutdown().await.unwrap();
}
