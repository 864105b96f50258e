use crate::board::{Board, home, serve, settings};
use models::fed::{Extent, Outgoing, Start};
use models::id::Hash;
use models::round::{Event, Phase};
use models::wire::{Answer, Receipt, Reject, Session};
use std::io;

/// Three boards to the end; what they got, and the host's final state.
async fn run_to_the_end() -> (Vec<Hash>, Hash) {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let (at, spec) = (host.address(), host.plan().spec.clone());
    let mut news = host.subscribe();
    let mut boards = Vec::new();
    for _ in 0..3 {
        boards.push(Board::join(&home, at).await);
    }
    while !all_done(&mut boards, at, &spec).await.unwrap() {}
    let status = host.status().await.unwrap();
    assert_eq!(status.phase, Phase::Finished);
    let (up, down) = host.traffic();
    assert!(up > 0 && down > 0);
    host.shutdown().await.unwrap();
    let mut folded = 0;
    while let Ok(event) = news.try_recv() {
        folded += usize::from(matches!(event, Event::Folded { .. }));
    }
    assert_eq!(folded, 2);
    (boards[0].model.clone().unwrap(), status.published.unwrap().state)
}

fn whole(spec: &models::params::ModelSpec) -> Outgoing {
    Outgoing::from_wire(Extent::Model, vec![0.25; Extent::Model.len(spec)], 5, Start::Global, Vec::new())
}

async fn all_done(
    boards: &mut [Board],
    at: std::net::SocketAddr,
    spec: &models::params::ModelSpec,
) -> io::Result<bool> {
    let mut done = true;
    for board in boards {
        done &= board.model.is_some() || board.step(at, spec).await?;
    }
    Ok(done)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_goes_to_its_end_and_twice_to_the_same_model() {
    let once = run_to_the_end().await;
    assert_eq!(once, run_to_the_end().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twice_late_stale_and_not_selected_have_their_own_answers() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let (at, spec) = (host.address(), host.plan().spec.clone());
    let boards = [Board::join(&home, at).await, Board::join(&home, at).await, Board::join(&home, at).await];
    let mut tasks = Vec::new();
    while tasks.len() < 2 {
        tasks.clear();
        for board in &boards {
            if let Answer::Task(task) = board.poll(at, None).await.unwrap().unwrap() {
                tasks.push((board, task));
            }
        }
    }
    let (board, task) = &tasks[0];
    let other = boards.iter().find(|b| tasks.iter().all(|(picked, _)| picked.id != b.id)).unwrap();
    let sealed = board.sealed(task, &spec);
    assert!(matches!(
        other.submit(at, &other.sealed(task, &spec)).await.unwrap(),
        Err(Reject::NotSelected { .. })
    ));
    assert_eq!(
        other.fetch(at, task.parts[0].hash).await.unwrap(),
        Err(Reject::NotYours),
        "only the cohort reads the parts"
    );
    assert_eq!(board.submit(at, &sealed).await.unwrap(), Ok(Receipt::Accepted));
    assert_eq!(board.submit(at, &sealed).await.unwrap(), Ok(Receipt::AlreadyAccepted));
    assert_eq!(
        board.submit(at, &other.sealed(task, &spec)).await.unwrap(),
        Err(Reject::Duplicate { accepted: Hash::of(&sealed) })
    );
    let (waiting, their) = &tasks[1];
    let stale = models::wire::seal_update(models::id::RoundId(7), their.codec, &spec, &whole(&spec)).unwrap();
    assert!(matches!(waiting.submit(at, &stale).await.unwrap(), Err(Reject::Resync { .. })));
    let old = Board {
        session: Session { epoch: 0, nonce: 0 },
        tls: waiting.tls.clone(),
        model: None,
        id: waiting.id,
    };
    let refused = old.sealed(&models::wire::Task { seed: 1, ..their.clone() }, &spec);
    assert_eq!(old.submit(at, &refused).await.unwrap(), Err(Reject::Superseded { epoch: 1 }));
    // The board restarts: the very same bytes in a new session still count once; the old session is told.
    let restarted =
        Board { session: Session { epoch: 2, nonce: 1 }, tls: board.tls.clone(), model: None, id: board.id };
    assert_eq!(restarted.submit(at, &sealed).await.unwrap(), Ok(Receipt::AlreadyAccepted));
    assert_eq!(board.submit(at, &sealed).await.unwrap(), Err(Reject::Superseded { epoch: 2 }));
    host.shutdown().await.unwrap();
    let kept = home.dir.blobs().unwrap().names().await.unwrap();
    assert!(kept.contains(&Hash::of(&sealed)));
    for never in [&stale, &refused] {
        assert!(!kept.contains(&Hash::of(never)), "what can't count takes no room");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_served_host_goes_on_with_the_same_boards() {
    let home = home(&settings()).await;
    let host = serve(&home).await;
    let board = Board::join(&home, host.address()).await;
    let copy = tempfile::tempdir().unwrap();
    let restored = home.dir.copy_to(&copy.path().join("copy")).await.unwrap();
    host.shutdown().await.unwrap();
    let host = aggregator::server::Server::start(&restored, Some(crate::board::LISTEN)).await.unwrap();
    assert!(
        board.poll(host.address(), None).await.unwrap().is_ok(),
        "known by its key, and it knows the host"
    );
    host.shutdown().await.unwrap();
}
