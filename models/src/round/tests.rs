//! A fleet in virtual time: the production machines, with loss, delay and crashes, and no thread.
mod modes;

use super::*;
use crate::fed::{Coverage, Disclosure, Extent, Outgoing, Start};
use crate::id::{ClientId, Hash, RoundId};
use crate::params::{EntryDecl, ModelCard, ModelSpec, Part, Preprocessing, Role, UpdateMode};
use crate::tensor::Shape;
use crate::tensor::rng::{Key, Purpose, Stream};
use crate::wire::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn spec() -> ModelSpec {
    let decl = |name: &str, part| EntryDecl {
        name: name.into(),
        shape: Shape::new([4, 2]),
        part,
        role: Role::Trainable,
    };
    let card = ModelCard {
        arch: "toy".into(),
        input: [1, 1, 2],
        labels: vec!["a".into(); 4],
        statistics: 0,
        preprocessing: Preprocessing::none(1),
    };
    ModelSpec::new(card, vec![decl("fc.weight", Part::Backbone), decl("head.weight", Part::Head)]).unwrap()
}

#[derive(Debug)]
struct Same;
impl Briefing for Same {
    fn task(&self, _: ClientId) -> (Vec<u16>, Vec<u8>) {
        (vec![0], vec![7])
    }
    fn offer(&self, _: ClientId) -> (Vec<u16>, Vec<u8>) {
        (vec![0], vec![8])
    }
}

fn charter() -> Charter {
    let (method, spec) = (Name::try_from("toy").unwrap(), Arc::new(spec()));
    Charter { method, hyper: Bytes::new(), spec, extent: Extent::Backbone, epochs: 2 }
}

fn policy() -> Policy {
    Policy {
        rounds: 3,
        min_boards: 2,
        round_ms: 1_000,
        poll_ms: 10,
        retry_ms: 50,
        sessions_per_hour: 1_000_000,
        ..Policy::default()
    }
}

fn published(tag: u32) -> Published {
    let hash = |kind: u8| Hash::of(&[&tag.to_le_bytes()[..], &[kind]].concat());
    Published { state: hash(0), parts: vec![PartRef { extent: Extent::Backbone, hash: hash(1) }] }
}

fn done(tag: u32) -> Completion {
    Completion::Done { published: published(tag), briefing: Arc::new(Same) }
}

fn session(epoch: u32) -> Session {
    Session { epoch, nonce: epoch }
}

fn ready(boards: u32) -> Coordinator {
    let mut host = Coordinator::new(Policy { min_boards: boards, ..policy() }, charter());
    (0..boards).for_each(|id| drop(host.enroll(ClientId(id))));
    assert_eq!(host.poll_effect(), Some(Effect::Prepare));
    host.complete(Millis(0), done(0));
    host
}

fn poll(host: &mut Coordinator, now: u64, id: u32) -> Result<Reply, Reject> {
    host.handle(
        Millis(now),
        ClientId(id),
        &Request::Poll(Poll { session: session(1), held: None, update: UpdateMode::Full }),
    )
    .reply
}

fn submit(host: &mut Coordinator, now: u64, id: u32, round: u32, tag: &[u8]) -> Result<Reply, Reject> {
    let request = Request::Submit { session: session(1), round: RoundId(round), update: Hash::of(tag) };
    host.handle(Millis(now), ClientId(id), &request).reply
}

/// Who is in the open round, and who is not.
fn picked(host: &mut Coordinator, now: u64, boards: u32) -> (Vec<u32>, Vec<u32>) {
    (0..boards).for_each(|id| drop(poll(host, now, id)));
    (0..boards).partition(|&id| matches!(poll(host, now, id), Ok(Reply::Answer(Answer::Task(_)))))
}

const ACCEPTED: Result<Reply, Reject> = Ok(Reply::Receipt(Receipt::Accepted));
const AGAIN: Result<Reply, Reject> = Ok(Reply::Receipt(Receipt::AlreadyAccepted));

#[test]
fn every_kind_of_update_has_its_own_answer() {
    let mut host = ready(4);
    let (cohort, others) = picked(&mut host, 1, 4);
    assert_eq!((cohort.len(), others.len()), (2, 2));
    let awaits =
        |host: &Coordinator, id, epoch, round| host.awaits(ClientId(id), session(epoch), RoundId(round));
    assert!(awaits(&host, cohort[0], 1, 0) && awaits(&host, cohort[0], 2, 0));
    assert!(
        !awaits(&host, cohort[0], 0, 0) && !awaits(&host, cohort[0], 1, 1) && !awaits(&host, others[0], 1, 0)
    );
    assert_eq!(submit(&mut host, 2, cohort[0], 0, b"a"), ACCEPTED);
    assert_eq!(submit(&mut host, 2, cohort[0], 0, b"a"), AGAIN);
    assert!(!awaits(&host, cohort[0], 1, 0), "it counts already");
    assert_eq!(
        submit(&mut host, 2, cohort[0], 0, b"other"),
        Err(Reject::Duplicate { accepted: Hash::of(b"a") })
    );
    assert_eq!(submit(&mut host, 2, others[0], 0, b"x"), Err(Reject::NotSelected { round: RoundId(0) }));
    assert_eq!(submit(&mut host, 2, cohort[1], 5, b"x"), Err(Reject::Resync { current: RoundId(0) }));
    host.handle_timeout(Millis(1_001));
    assert_eq!(submit(&mut host, 1_002, cohort[1], 0, b"b"), Err(Reject::Late { current: RoundId(1) }));
    assert!(matches!(host.poll_effect(), Some(Effect::Aggregate { replies, .. }) if replies.len() == 1));
    host.complete(Millis(1_003), done(1));
    assert_eq!(submit(&mut host, 1_004, cohort[1], 0, b"b"), Err(Reject::Late { current: RoundId(1) }));
    assert_eq!(submit(&mut host, 1_004, others[0], 0, b"x"), Err(Reject::Stale { current: RoundId(1) }));
    assert_eq!(
        submit(&mut host, 1_004, cohort[0], 0, b"a"),
        AGAIN,
        "the answer was lost and the round went on"
    );
}

#[test]
fn a_later_session_takes_over_and_an_equal_one_does_not() {
    let mut host = ready(2);
    let ask = |host: &mut Coordinator, epoch, nonce| {
        let poll = Poll { session: Session { epoch, nonce }, held: None, update: UpdateMode::Full };
        host.handle(Millis(1), ClientId(0), &Request::Poll(poll)).reply.err()
    };
    assert_eq!(ask(&mut host, 1, 1), None);
    assert_eq!(ask(&mut host, 1, 2), Some(Reject::Superseded { epoch: 1 }));
    assert_eq!(ask(&mut host, 2, 2), None);
    assert_eq!(ask(&mut host, 1, 1), Some(Reject::Superseded { epoch: 2 }));
}

#[test]
fn a_round_without_quorum_is_opened_again_and_stalls_in_the_end() {
    let mut host = ready(2);
    let mut now = 1;
    for failure in 1..=policy().max_failures {
        picked(&mut host, now, 2);
        let events = host.handle_timeout(Millis(now + 1_000));
        let Some(Event::Failed { again, why: Abandoned::TooFew { got: 0, needed: 1 }, .. }) = events.first()
        else {
            panic!("{events:?}")
        };
        now = again.0;
        assert_eq!(host.status(Millis(now)).failures, failure);
    }
    assert_eq!(host.status(Millis(now)).phase, Phase::Stalled);
    assert_eq!(host.status(Millis(now)).published, Some(published(0)), "the old state stays");
}

#[test]
fn a_stalled_run_is_recalled_as_such_and_goes_on_after_a_restart() {
    let why = Abandoned::TooFew { got: 0, needed: 1 };
    let failed = Event::Failed { round: RoundId(0), why, again: Millis(9) };
    let mut log = vec![Event::Ready { published: published(0) }];
    log.extend(std::iter::repeat_n(failed, policy().max_failures as usize));
    let left = Coordinator::recall(policy(), charter(), &log).status(Millis(10));
    assert_eq!((left.phase, left.failures), (Phase::Stalled, policy().max_failures));
    let again = Coordinator::replay(policy(), charter(), Millis(10), &log).status(Millis(10));
    assert_eq!((again.phase, again.failures), (Phase::Gathering { not_before: Millis(10) }, 0));
}

#[test]
fn what_fails_on_the_host_is_tried_again_ever_more_slowly_and_never_given_up() {
    let mut host = Coordinator::new(policy(), charter());
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..20 {
        assert_eq!(host.poll_effect(), Some(Effect::Prepare));
        let events = host.complete(Millis(now), Completion::Failed { why: "the disk is full".into() });
        let [Event::Failed { again, .. }] = events[..] else { panic!("{events:?}") };
        assert_eq!((host.poll_effect(), host.poll_timeout()), (None, Some(again)), "not at once");
        host.handle_timeout(Millis(again.0 - 1));
        assert_eq!(host.poll_effect(), None, "not too early");
        host.handle_timeout(again);
        pauses.push(again.0 - now);
        now = again.0;
    }
    assert_eq!(pauses[..3], [50, 100, 200]);
    assert_eq!(pauses.last(), Some(&300_000), "minutes at most");
    assert_eq!(host.status(Millis(now)).failures, 20);
}

#[test]
fn a_board_that_is_started_too_often_is_told_so_and_fills_no_ledger() {
    let mut host = Coordinator::new(Policy { sessions_per_hour: 3, ..policy() }, charter());
    host.enroll(ClientId(0));
    let mut ask = |now, epoch| {
        let request = Request::Poll(Poll { session: session(epoch), held: None, update: UpdateMode::Full });
        host.handle(Millis(now), ClientId(0), &request)
    };
    for epoch in 1..=3 {
        assert_eq!(ask(10, epoch).events.len(), 1);
    }
    let fourth = ask(1_010, 4);
    assert_eq!(fourth.reply, Err(Reject::TooManySessions { retry_ms: 3_598_990 }));
    assert!(fourth.events.is_empty());
    assert!(ask(1_020, 3).reply.is_ok(), "the session before goes on");
    assert!(ask(3_600_010, 4).reply.is_ok(), "and in the next hour another may begin");
}

#[test]
fn the_model_that_is_offered_has_the_number_of_rounds_really_trained() {
    let mut log = vec![Event::Enrolled { client: ClientId(0) }, Event::Ready { published: published(0) }];
    log.extend((0..3).map(|r| Event::Folded { round: RoundId(r), published: published(r + 1) }));
    log.push(Event::Finished { published: published(9) });
    let mut host = Coordinator::replay(Policy { rounds: 12, ..policy() }, charter(), Millis(1), &log);
    host.brief(Arc::new(Same));
    let Ok(Reply::Answer(Answer::Adopt(offer))) = poll(&mut host, 1, 0) else { panic!("no offer") };
    assert_eq!(offer.version, 3);
    let held = Request::Poll(Poll { session: session(1), held: Some(3), update: UpdateMode::Full });
    let reply = host.handle(Millis(2), ClientId(0), &held).reply;
    assert!(
        matches!(reply, Ok(Reply::Answer(Answer::Wait(Outlook { why: Why::Finished, .. })))),
        "{reply:?}"
    );
}

#[test]
fn the_same_update_counts_again_when_its_round_failed_and_opened_again() {
    let mut host = Coordinator::new(Policy { participation: 1.0, ..policy() }, charter());
    (0..2).for_each(|id| drop(host.enroll(ClientId(id))));
    assert_eq!(host.poll_effect(), Some(Effect::Prepare));
    host.complete(Millis(0), done(0));
    picked(&mut host, 1, 2);
    (0..2).for_each(|id| assert_eq!(submit(&mut host, 2, id, 0, b"same"), ACCEPTED));
    assert!(matches!(host.poll_effect(), Some(Effect::Aggregate { .. })));
    let events = host.complete(Millis(3), Completion::Failed { why: "the disk is full".into() });
    let Some(Event::Failed { again, .. }) = events.first() else { panic!("{events:?}") };
    picked(&mut host, again.0, 2);
    (0..2).for_each(|id| assert_eq!(submit(&mut host, again.0 + 1, id, 0, b"same"), ACCEPTED));
}

#[test]
fn a_board_reads_only_what_its_task_names() {
    let mut host = ready(4);
    let (cohort, others) = picked(&mut host, 1, 4);
    let part = published(0).parts[0].hash;
    assert!(host.may_read(ClientId(cohort[0]), part));
    assert!(!host.may_read(ClientId(others[0]), part));
    assert!(!host.may_read(ClientId(cohort[0]), published(0).state));
    assert!(!host.may_read(ClientId(99), part));
}

#[test]
fn a_revoked_board_is_refused_and_not_waited_for() {
    let mut host = ready(4);
    let (cohort, _) = picked(&mut host, 1, 4);
    assert_eq!(submit(&mut host, 2, cohort[0], 0, b"a"), ACCEPTED);
    let events = host.revoke(Millis(3), ClientId(cohort[1]));
    assert!(events.contains(&Event::Closed { round: RoundId(0) }));
    assert_eq!(poll(&mut host, 4, cohort[1]), Err(Reject::Revoked));
}

/// A whole run under a schedule of losses: each board and the host crash and come back; nothing is counted twice.
struct Fleet {
    host: Coordinator,
    log: Vec<Event>,
    boards: Vec<Participant>,
    disks: Vec<Option<Pending>>,
    epochs: Vec<u32>,
    /// What each board trains at most.
    modes: Vec<UpdateMode>,
    chaos: Stream,
    loss: f64,
    now: u64,
    folded: BTreeMap<RoundId, Vec<ClientId>>,
}

fn discloses(_: &str, _: &[u8]) -> Option<Disclosure> {
    Some(Disclosure::Backbone)
}

impl Fleet {
    fn new(boards: u32, seed: u64, loss: f64) -> Self {
        let mut host = Coordinator::new(policy(), charter());
        let log = (0..boards).flat_map(|id| host.enroll(ClientId(id))).collect();
        let board = |id| {
            Participant::new(Ceilings::default(), discloses, Session { epoch: 1, nonce: id }, None, None)
        };
        let chaos = Key::new(seed, Purpose::Test).stream();
        let (disks, epochs) = (vec![None; boards as usize], vec![1; boards as usize]);
        Self {
            host,
            log,
            boards: (0..boards).map(board).collect(),
            disks,
            epochs,
            modes: vec![UpdateMode::Full; boards as usize],
            chaos,
            loss,
            now: 0,
            folded: BTreeMap::new(),
        }
    }

    fn unlucky(&mut self) -> bool {
        self.chaos.unit64() < self.loss
    }

    fn send(&mut self, from: usize, request: &Request) -> Happening {
        if self.unlucky() {
            return Happening::Unreachable;
        }
        let handled = self.host.handle(Millis(self.now), ClientId(from as u32), request);
        self.log.extend(handled.events);
        if self.unlucky() {
            return Happening::Unreachable;
        }
        match handled.reply {
            Ok(Reply::Answer(answer)) => Happening::Answered(Box::new(answer)),
            Ok(Reply::Receipt(receipt)) => Happening::Received(receipt),
            Err(reject) => Happening::Refused(reject),
        }
    }

    fn restart_board(&mut self, id: usize) {
        self.epochs[id] += 1;
        let session = Session { epoch: self.epochs[id], nonce: id as u32 };
        let ceilings = Ceilings { update: self.modes[id], ..Ceilings::default() };
        self.boards[id] = Participant::new(ceilings, discloses, session, None, self.disks[id].clone());
    }

    fn restart_host(&mut self) {
        self.host = Coordinator::replay(policy(), charter(), Millis(self.now), &self.log);
        self.host.brief(Arc::new(Same));
    }

    fn fit(&mut self, id: usize, task: &Task) -> Happening {
        let of = Coverage { extent: Extent::Backbone, mode: self.modes[id].of(&spec()) };
        let out = Outgoing::from_wire(of, vec![id as f32 / 64.0; 8], 5, Start::Global, vec![]);
        let pending = Pending {
            round: task.round,
            sealed: seal_update(task.round, Codec::F32, &spec(), &out).unwrap(),
        };
        self.disks[id] = Some(pending.clone());
        Happening::Fitted(pending)
    }

    fn board(&mut self, id: usize) {
        if self.unlucky() && self.unlucky() {
            return self.restart_board(id);
        }
        let happening = match self.boards[id].step(Millis(self.now)) {
            Step::Poll(poll) => self.send(id, &Request::Poll(poll)),
            Step::Fetch(_) => Happening::Fetched,
            Step::Fit(task) => self.fit(id, &task),
            Step::Adopt(_) => Happening::Adopted,
            Step::Submit(body) => {
                let (session, sealed) = split_submit(&body).unwrap();
                let round = open_update(sealed, &spec()).unwrap().0.round;
                self.send(id, &Request::Submit { session, round, update: Hash::of(sealed) })
            }
            Step::Decline(decline) => self.send(id, &Request::Decline(decline)),
            Step::Settle => {
                self.disks[id] = None;
                Happening::Settled
            }
            Step::Sleep { .. } => return,
            Step::Stop(why) => panic!("board {id} stopped: {why}"),
        };
        self.boards[id].handle(Millis(self.now), &spec(), happening);
    }

    fn compute(&mut self) {
        let Some(effect) = self.host.poll_effect() else { return };
        if let Effect::Aggregate { round, replies, .. } = &effect {
            self.folded.insert(*round, replies.iter().map(|r| r.0).collect());
        }
        if self.unlucky() {
            return self.restart_host();
        }
        let tag = self.folded.len() as u32;
        self.log.extend(self.host.complete(Millis(self.now), done(tag)));
    }

    fn finished(&self) -> bool {
        self.host.status(Millis(self.now)).phase == Phase::Finished
    }

    fn run(&mut self) {
        for _ in 0..200_000 {
            if self.finished() {
                return;
            }
            self.now += 5;
            self.log.extend(self.host.handle_timeout(Millis(self.now)));
            (0..self.boards.len()).for_each(|id| self.board(id));
            self.compute();
            if self.unlucky() && self.unlucky() {
                self.restart_host();
            }
        }
        panic!("no end: {:?}", self.host.status(Millis(self.now)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_run_ends_whatever_is_lost_and_counts_each_board_once(seed in any::<u64>(), loss in 0.0_f64..0.35) {
        let mut fleet = Fleet::new(5, seed, loss);
        fleet.run();
        for round in 0..3 {
            let accepted: Vec<_> = fleet.log.iter().filter_map(|e| match e {
                Event::Accepted { round: r, client, .. } if r.0 == round => Some(*client),
                _ => None,
            }).collect();
            let folded = &fleet.folded[&RoundId(round)];
            prop_assert!(folded.iter().all(|id| accepted.contains(id)));
            prop_assert!(folded.windows(2).all(|w| w[0] < w[1]), "a board is folded once");
        }
        let again = Coordinator::replay(policy(), charter(), Millis(fleet.now), &fleet.log);
        prop_assert_eq!(again.status(Millis(fleet.now)).published, fleet.host.status(Millis(fleet.now)).published);
    }
}

#[test]
fn a_task_that_asks_for_more_than_allowed_is_refused_by_name() {
    let mut board =
        Participant::new(Ceilings::default(), |_, _| Some(Disclosure::FullModel), session(1), None, None);
    let mut host = ready(2);
    picked(&mut host, 1, 2);
    let Some(Ok(Reply::Answer(answer))) =
        (0..2).map(|id| poll(&mut host, 2, id)).find(|r| matches!(r, Ok(Reply::Answer(Answer::Task(_)))))
    else {
        panic!("nobody was picked")
    };
    board.handle(Millis(2), &spec(), Happening::Answered(Box::new(answer)));
    let Step::Decline(decline) = board.step(Millis(2)) else { panic!("{:?}", board.step(Millis(2))) };
    assert_eq!(
        decline.why,
        Declined::Disclosure { asked: Disclosure::FullModel, allowed: Disclosure::Backbone }
    );
}

#[test]
fn an_update_that_would_disclose_more_than_allowed_never_leaves() {
    let mut board = Participant::new(Ceilings::default(), discloses, session(1), None, None);
    let out = Outgoing::from_wire(Extent::Model, vec![0.0; 16], 5, Start::Global, vec![]);
    let pending =
        Pending { round: RoundId(0), sealed: seal_update(RoundId(0), Codec::F32, &spec(), &out).unwrap() };
    board.handle(Millis(1), &spec(), Happening::Fitted(pending));
    let allowed = Disclosure::Backbone;
    assert_eq!(board.step(Millis(1)), Step::Stop(Stop::Discloses { would: Disclosure::FullModel, allowed }));
}
