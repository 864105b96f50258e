//! A fleet in virtual time whose boards train different parts of the model.
use super::*;
use std::num::NonZeroU16;

fn last(layers: u16) -> UpdateMode {
    UpdateMode::Last(NonZeroU16::new(layers).unwrap())
}

fn ask(host: &mut Coordinator, now: u64, id: u32, epoch: u32, update: UpdateMode) -> Handled {
    host.handle(
        Millis(now),
        ClientId(id),
        &Request::Poll(Poll { session: session(epoch), held: None, update }),
    )
}

fn why(handled: Handled) -> Why {
    match handled.reply {
        Ok(Reply::Answer(Answer::Wait(outlook))) => outlook.why,
        other => panic!("{other:?}"),
    }
}

/// `toy` shares the backbone, which is one layer: a board that trains its head, the last layer alone, or biases, of which there are none,
/// has nothing to send.
#[test]
fn a_board_that_sends_nothing_is_never_counted_nor_picked() {
    let mut host = ready(2);
    let round = RoundId(0);
    for (id, update) in [(0, UpdateMode::Head), (1, last(1)), (2, UpdateMode::Bias)] {
        host.enroll(ClientId(id));
        assert_eq!(why(ask(&mut host, 1, id, 1, update)), Why::NothingToSend { round });
    }
    let status = host.status(Millis(1));
    assert_eq!((status.boards, status.live, status.sending), (3, 3, 0));
    host.enroll(ClientId(3));
    let first = why(ask(&mut host, 2, 3, 1, UpdateMode::Full));
    assert_eq!(first, Why::TooFewBoards { have: 1, need: 2 }, "only such as send count");
    host.enroll(ClientId(4));
    let second = ask(&mut host, 3, 4, 1, last(2));
    let Some(Event::Opened { cohort, .. }) = second.events.last() else { panic!("{second:?}") };
    assert!(cohort.iter().all(|id| [3, 4].contains(&id.0)), "{cohort:?}");
    assert_eq!(why(ask(&mut host, 4, 0, 1, UpdateMode::Head)), Why::NothingToSend { round });
}

#[test]
fn a_board_is_listened_to_once_in_a_session_and_a_restart_of_the_host_remembers() {
    let mut host = ready(2);
    let mut log = ask(&mut host, 1, 0, 1, UpdateMode::Head).events;
    let said = Event::Mode { client: ClientId(0), update: UpdateMode::Head };
    assert_eq!(log.iter().filter(|e| **e == said).count(), 1);
    for update in [UpdateMode::Full, UpdateMode::Head, last(2)] {
        assert!(ask(&mut host, 2, 0, 1, update).events.is_empty(), "its first word counts");
    }
    log.splice(0..0, [Event::Enrolled { client: ClientId(0) }, Event::Ready { published: published(0) }]);
    let mut again = Coordinator::replay(policy(), charter(), Millis(3), &log);
    again.brief(Arc::new(Same));
    assert_eq!((again.status(Millis(3)).live, again.status(Millis(3)).sending), (1, 0));
    let more = ask(&mut again, 4, 0, 2, UpdateMode::Full).events;
    assert!(more.contains(&Event::Mode { client: ClientId(0), update: UpdateMode::Full }), "{more:?}");
    assert_eq!(again.status(Millis(4)).sending, 1);
}

#[test]
fn what_the_run_wishes_is_held_below_what_the_owner_lets() {
    let wish = Policy { update: last(1), ..policy() };
    let mut host = Coordinator::new(wish, Charter { extent: Extent::Model, ..charter() });
    host.enroll(ClientId(0));
    ask(&mut host, 1, 0, 1, last(2));
    assert_eq!(host.status(Millis(1)).sending, 1, "it sends the head, which this run shares");
    let mut backbones = Coordinator::new(Policy { update: last(1), ..policy() }, charter());
    backbones.enroll(ClientId(0));
    ask(&mut backbones, 1, 0, 1, last(2));
    assert_eq!(backbones.status(Millis(1)).sending, 0, "of the last layer nothing is shared");
}

/// A task that comes all the same, to a board that was picked before it was restarted with less, is declined by name.
#[test]
fn a_board_that_sends_nothing_declines_a_task() {
    let mut host = ready(2);
    let (cohort, _) = picked(&mut host, 1, 2);
    let Ok(Reply::Answer(answer)) = ask(&mut host, 2, cohort[0], 2, UpdateMode::Head).reply else { panic!() };
    assert!(matches!(answer, Answer::Task(_)), "it was picked before");
    let ceilings = Ceilings { update: UpdateMode::Head, ..Ceilings::default() };
    let mut board = Participant::new(ceilings, discloses, session(2), None, None);
    let Step::Poll(poll) = board.step(Millis(2)) else { panic!() };
    assert_eq!(poll.update, UpdateMode::Head);
    board.handle(Millis(2), &spec(), Happening::Answered(Box::new(answer)));
    let Step::Decline(decline) = board.step(Millis(2)) else { panic!("{:?}", board.step(Millis(2))) };
    assert_eq!(decline.why, Declined::NothingToSend { allowed: UpdateMode::Head });
    let declined = host.handle(Millis(3), ClientId(cohort[0]), &Request::Decline(decline)).events;
    assert!(matches!(declined[0], Event::Declined { .. }), "{declined:?}");
}

#[test]
fn an_update_of_another_version_is_forgotten_and_not_sent_for_ever() {
    let out = Outgoing::from_wire(Extent::Backbone, vec![0.0; 8], 5, Start::Global, vec![]);
    let mut sealed = seal_update(RoundId(0), Codec::F32, &spec(), &out).unwrap();
    let pending = |sealed: &[u8]| Some(Pending { round: RoundId(0), sealed: sealed.to_vec() });
    let step =
        |pending| Participant::new(Ceilings::default(), discloses, session(1), None, pending).step(Millis(0));
    assert!(matches!(step(pending(&sealed)), Step::Submit(_)));
    sealed[4] = 1;
    assert_eq!(step(pending(&sealed)), Step::Settle);
}

/// Which of eight boards sends nothing.
const SILENT: [usize; 2] = [2, 5];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_is_lost_a_head_board_is_never_picked_and_ends_with_the_model(seed in any::<u64>(), loss in 0.0_f64..0.3) {
        let mut fleet = Fleet::new(8, seed, loss);
        for id in 0..8 {
            let silent = SILENT.contains(&id);
            fleet.modes[id] = if silent { UpdateMode::Head } else { [UpdateMode::Full, last(2)][id % 2] };
            fleet.restart_board(id);
        }
        fleet.run();
        let picked = |e: &Event| match e {
            Event::Opened { cohort, .. } => cohort.clone(),
            _ => Vec::new(),
        };
        let cohorts: Vec<ClientId> = fleet.log.iter().flat_map(picked).collect();
        prop_assert!(!cohorts.is_empty() && cohorts.iter().all(|id| !SILENT.contains(&(id.0 as usize))));
        for id in SILENT {
            let offer = ask(&mut fleet.host, fleet.now, id as u32, u32::MAX, UpdateMode::Head).reply;
            prop_assert!(matches!(offer, Ok(Reply::Answer(Answer::Adopt(_)))), "{:?}", offer);
        }
    }
}
