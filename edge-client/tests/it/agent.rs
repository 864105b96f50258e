//! The loop over a host in memory: nothing is lost, nothing is sent that the owner forbids.
use crate::host::{Fake, card, live, live_in};
use edge_client::agent::{AgentError, Means};
use edge_client::answers::{Answerer, Graphs};
use edge_client::store::Store;
use models::fed::{Decider, Disclosure, Extractor, Stream};
use models::nn::{TrainError, arch};
use models::params::UpdateMode;
use models::round::Stop;
use models::tensor::TensorView;
use models::wire::{Declined, Reject, open_update, split_submit};
use onnx::runtime::{Engine, Options};

const PLENTY: Means = Means { minutes: 60, memory: 1 << 30 };

#[test]
fn a_board_trains_delivers_takes_the_model_over_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let host = Fake::new();
    let (ended, said) = live(dir.path(), &host, Disclosure::FullModel, PLENTY);
    ended.unwrap();
    let said = said.join("\n");
    for part in ["round 0: training", "round 0: trained", "model 1: taken over", "finished"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let record = Store::peek(dir.path()).unwrap();
    let personal = record.personal;
    assert_eq!((personal.rounds, personal.held, personal.pending), (1, Some(1), None));
    assert_eq!(record.host_time, 1_800_000_000);
    assert_eq!(host.borrow().updates.len(), 1);
}

#[test]
fn a_lost_answer_means_the_same_bytes_again_in_the_next_life_too() {
    let dir = tempfile::tempdir().unwrap();
    let host = Fake::new();
    host.borrow_mut().losses = 1;
    let (ended, _) = live(dir.path(), &host, Disclosure::FullModel, PLENTY);
    assert!(matches!(ended, Err(AgentError::Unreachable(_))), "{ended:?}");
    assert!(Store::peek(dir.path()).unwrap().personal.pending.is_some());
    let (ended, said) = live(dir.path(), &host, Disclosure::FullModel, PLENTY);
    ended.unwrap();
    assert!(said[0].contains("sending it again"), "{said:?}");
    let host = host.borrow();
    let [first, second] = &host.updates[..] else { panic!("{} updates", host.updates.len()) };
    let ((one, sealed), (two, again)) = (split_submit(first).unwrap(), split_submit(second).unwrap());
    assert_eq!(sealed, again);
    assert!(one.epoch < two.epoch);
    assert_eq!(Store::peek(dir.path()).unwrap().personal.rounds, 1);
}

#[test]
fn a_task_that_discloses_more_than_allowed_is_declined_by_name_and_nothing_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let host = Fake::new();
    let (_, said) = live(dir.path(), &host, Disclosure::Backbone, PLENTY);
    let (asked, allowed) = (Disclosure::FullModel, Disclosure::Backbone);
    assert_eq!(host.borrow().declined, [Declined::Disclosure { asked, allowed }]);
    assert!(host.borrow().updates.is_empty());
    assert!(
        said.iter().any(|line| line.contains("declined") && line.contains("[privacy] allow")),
        "{said:?}"
    );
}

#[test]
fn a_task_beyond_the_boards_means_is_declined_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let host = Fake::new();
    let (_, said) = live(dir.path(), &host, Disclosure::FullModel, Means { memory: 1, ..PLENTY });
    assert!(matches!(host.borrow().declined[..], [Declined::Memory { .. }]), "{said:?}");
    // The first round tells how fast the board is.
    host.borrow_mut().again();
    live(dir.path(), &host, Disclosure::FullModel, PLENTY).0.unwrap();
    host.borrow_mut().again();
    let (_, said) = live(dir.path(), &host, Disclosure::FullModel, Means { minutes: 0, ..PLENTY });
    assert!(matches!(host.borrow().declined[1..], [Declined::Minutes { asked: 1, allowed: 0 }]), "{said:?}");
}

#[test]
fn a_board_trains_and_sends_what_its_owner_lets_and_no_more() {
    let (_, spec) = arch::build(&card()).unwrap();
    let mut sizes = Vec::new();
    for mode in ["full", "bias", "last:1", "last:7"] {
        let (dir, host) = (tempfile::tempdir().unwrap(), Fake::new());
        let (ended, said) = live_in(dir.path(), &host, Disclosure::FullModel, PLENTY, mode.parse().unwrap());
        ended.unwrap();
        let body = host.borrow().updates[0].clone();
        let sealed = split_submit(&body).unwrap().1;
        let trained = if mode == "last:7" { "full" } else { mode };
        let told = said.iter().find(|line| line.starts_with("round 0: trained ")).unwrap();
        assert!(told.contains(&format!(" trained {trained} in ")), "{told}");
        assert!(told.ends_with(&format!("sending {} bytes", sealed.len())), "{told}");
        let (header, _) = open_update(sealed, &spec).unwrap();
        assert_eq!(header.mode.to_string(), trained);
        assert_eq!(Store::peek(dir.path()).unwrap().personal.held, Some(1), "{mode}");
        sizes.push(sealed.len());
    }
    // 64 hidden biases and 3 of the head, or the head's 3 rows of 64, four bytes each.
    assert_eq!((sizes[0] - sizes[1], sizes[0] - sizes[2]), (4 * (64 * 16 + 3 * 64), 4 * 64 * 17 - 1));
    assert_eq!(sizes[3], sizes[0]);
}

#[test]
fn a_board_that_trains_its_head_alone_declines_a_task_and_sends_nothing() {
    let (dir, host) = (tempfile::tempdir().unwrap(), Fake::new());
    let (_, said) = live_in(dir.path(), &host, Disclosure::FullModel, PLENTY, UpdateMode::Head);
    assert_eq!(host.borrow().declined, [Declined::NothingToSend { allowed: UpdateMode::Head }], "{said:?}");
    assert!(host.borrow().updates.is_empty());
    assert!(said.iter().any(|line| line.contains("model 1: taken over")), "{said:?}");
}

#[test]
fn a_board_whose_key_is_used_elsewhere_stops_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let host = Fake::new();
    host.borrow_mut().refuse = Some(Reject::Superseded { epoch: 8 });
    let (ended, _) = live(dir.path(), &host, Disclosure::FullModel, PLENTY);
    assert!(
        matches!(ended, Err(AgentError::Stopped(Stop::Refused(Reject::Superseded { epoch: 8 })))),
        "{ended:?}"
    );
}

/// The training engine, asked directly.
struct Native(models::nn::Extractor);

impl Extractor for Native {
    fn extract(&mut self, stream: &Stream, inputs: TensorView<'_>) -> Result<Vec<f32>, TrainError> {
        self.0.features(&stream.backbone, &stream.conditioning, inputs.values())
    }
}

#[test]
fn what_it_learned_answers_through_exported_graphs_as_it_does_itself() {
    let dir = tempfile::tempdir().unwrap();
    live(dir.path(), &Fake::new(), Disclosure::FullModel, PLENTY).0.unwrap();
    let (graph, spec) = arch::build(&card()).unwrap();
    let predictor = Store::peek(dir.path()).unwrap().personal.predictor(&spec).unwrap();
    let graphs = Graphs::of(&predictor, &graph).unwrap();
    assert!(graphs.generalist.is_none(), "FedAvg has one stream");
    let native = Engine::Native.open(&Options::of_process()).unwrap();
    let mut answerer = Answerer::new(&graphs, predictor.router().clone(), &spec, native.as_ref()).unwrap();
    let inputs: Vec<f32> = (0..3 * 16).map(|i| i as f32 / 48.0).collect();
    let answers = answerer.answer(&inputs).unwrap();
    let mut own = Native(models::nn::Extractor::new(graph, None));
    let expected = predictor.specialist().answer(&mut own, TensorView::new(&[3, 1, 4, 4], &inputs)).unwrap();
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!((answer.decided_by, answer.weight, answer.unfamiliar), (Decider::Specialist, 1.0, false));
        for (p, log) in answer.probabilities.iter().zip(expected.row(i)) {
            assert!((p - log.exp()).abs() < 1e-5, "{p} {log}");
        }
    }
}
