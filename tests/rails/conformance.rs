//! What every rail promises, whatever it speaks. A rail joins with a [`Harness`] and one line in
//! `main.rs`.

use std::sync::Arc;
use std::time::Instant;

use trestle::delivery::{Row, Settled};
use trestle::rails::Rail;
use uuid::Uuid;

use crate::lanes::{self, MARK, Terms, deliver, word, words};

/// A row as the receiver has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) outbox_id: Uuid,
    pub(crate) payload: String,
}

/// A rail with a real receiver behind it, which takes everything until it is told otherwise. The
/// rail's time-out is short, because a test waits for it.
pub(crate) trait Harness {
    /// Whether it delivers in batches, each as a whole or not at all. Then what is in doubt is left undecided:
    /// nothing of it is visible, and nothing is written down, until the rail has found out. And behind a
    /// row that is refused nothing of its lane is in the same batch.
    const IN_BATCHES: bool = false;

    async fn start() -> Self;

    fn rail(&self) -> Arc<dyn Rail>;

    /// Makes of a row one that the receiver refuses for good.
    fn spoil(&self, row: &mut Row);

    /// From now on no connection to the receiver succeeds. Called before anything is sent.
    async fn go_down(&mut self);

    /// From now on the receiver takes what comes and never says anything.
    async fn hang(&mut self);

    /// From now on the receiver keeps what comes, and its acknowledgement is lost.
    async fn lose_answers(&mut self);

    /// What the receiver has, in the order in which it came.
    async fn arrived(&mut self) -> Vec<Arrival>;

    /// Secrets of the rail's configuration, which nothing may repeat.
    fn secrets(&self) -> Vec<String>;
}

/// One test for each promise.
macro_rules! conforms {
    ($name:ident, $harness:ty) => {
        conforms!($name, $harness:
            everything_accepted_arrives_once_in_order_and_unchanged,
            each_row_is_reported_once,
            a_skipping_lane_goes_on_behind_a_refused_row,
            a_halting_lane_stops_at_a_refused_row,
            a_receiver_that_is_down_costs_nothing,
            a_hang_ends_in_time_and_in_doubt,
            a_lost_answer_is_in_doubt,
            a_lease_that_is_too_short_sends_nothing,
            a_worker_that_stops_sends_nothing,
            giving_up_reports_everything,
            nothing_is_sent_after_giving_up,
            payload_and_secrets_stay_out_of_outcomes
        );
    };
    ($name:ident, $harness:ty: $($promise:ident),+) => {
        mod $name {
            $(
                #[tokio::test]
                async fn $promise() {
                    crate::conformance::$promise::<$harness>().await;
                }
            )+
        }
    };
}
pub(crate) use conforms;

pub(crate) async fn everything_accepted_arrives_once_in_order_and_unchanged<H: Harness>() {
    let mut harness = H::start().await;
    let mut carried = Vec::new();
    let mut expected = Vec::new();
    for participant in ["anna", "böb", "Zoë 東京"] {
        let rows = lanes::rows(participant, 20);
        expected.push(rows.iter().map(arrival).collect::<Vec<_>>());
        carried.push(deliver(&*harness.rail(), rows, Terms::default()));
    }
    for lane in carried {
        assert_eq!(words(&lane.settled().await), ["delivered"; 20]);
    }
    let arrived = harness.arrived().await;
    assert_eq!(arrived.len(), 60, "each once");
    for lane in expected {
        let of_lane: Vec<Arrival> =
            arrived.iter().filter(|one| lane.contains(one)).cloned().collect();
        assert_eq!(of_lane, lane);
    }
}

pub(crate) async fn each_row_is_reported_once<H: Harness>() {
    let harness = H::start().await;
    let mut rows = lanes::rows("anna", 10);
    harness.spoil(&mut rows[3]);
    let mut expected: Vec<Uuid> = rows.iter().map(|row| row.outbox_id).collect();
    let settled = deliver(&*harness.rail(), rows, Terms::unordered()).settled().await;
    let mut reported: Vec<Uuid> = settled.iter().map(|settled| settled.outbox_id).collect();
    expected.sort();
    reported.sort();
    assert_eq!(reported, expected);
}

pub(crate) async fn a_skipping_lane_goes_on_behind_a_refused_row<H: Harness>() {
    let (settled, arrived, expected) = refused_in_the_middle::<H>(Terms::default()).await;
    if H::IN_BATCHES {
        assert_eq!(words(&settled), ["delivered", "refused", "released"], "for the next batch");
        assert_eq!(arrived, expected[..1]);
    } else {
        assert_eq!(words(&settled), ["delivered", "refused", "delivered"]);
        assert_eq!(arrived, [expected[0].clone(), expected[2].clone()]);
    }
}

pub(crate) async fn a_halting_lane_stops_at_a_refused_row<H: Harness>() {
    let (settled, arrived, expected) = refused_in_the_middle::<H>(Terms::halting()).await;
    assert_eq!(words(&settled), ["delivered", "refused"], "the database gives back the third");
    assert_eq!(arrived, expected[..1]);
}

async fn refused_in_the_middle<H: Harness>(
    terms: Terms,
) -> (Vec<Settled>, Vec<Arrival>, Vec<Arrival>) {
    let mut harness = H::start().await;
    let mut rows = lanes::rows("anna", 3);
    harness.spoil(&mut rows[1]);
    let expected = rows.iter().map(arrival).collect();
    let settled = deliver(&*harness.rail(), rows, terms).settled().await;
    (settled, harness.arrived().await, expected)
}

pub(crate) async fn a_receiver_that_is_down_costs_nothing<H: Harness>() {
    let mut harness = H::start().await;
    harness.go_down().await;
    for terms in [Terms::default(), Terms::unordered()] {
        let settled = deliver(&*harness.rail(), lanes::rows("anna", 3), terms).settled().await;
        assert!(!settled.is_empty());
        assert!(settled.iter().all(|settled| word(settled) == "released"), "{settled:?}");
    }
}

pub(crate) async fn a_hang_ends_in_time_and_in_doubt<H: Harness>() {
    let mut harness = H::start().await;
    harness.hang().await;
    let (rail, begin) = (harness.rail(), Instant::now());
    let settled = deliver(&*rail, lanes::rows("anna", 3), Terms::default()).settled().await;
    let took = begin.elapsed();
    assert!(took <= rail.longest_send(), "{took:?}");
    assert_eq!(words(&settled), in_doubt::<H>(), "the database gives back the others");
}

pub(crate) async fn a_lost_answer_is_in_doubt<H: Harness>() {
    let mut harness = H::start().await;
    harness.lose_answers().await;
    let rows = lanes::rows("anna", 3);
    let first = arrival(&rows[0]);
    let settled = deliver(&*harness.rail(), rows, Terms::default()).settled().await;
    assert_eq!(words(&settled), in_doubt::<H>(), "the database gives back the others");
    let visible = (!H::IN_BATCHES).then_some(&first);
    assert_eq!(harness.arrived().await.first(), visible, "it did arrive");
}

pub(crate) async fn a_lease_that_is_too_short_sends_nothing<H: Harness>() {
    let mut harness = H::start().await;
    let rail = harness.rail();
    let terms = Terms::leased_for(rail.longest_send());
    let settled = deliver(&*rail, lanes::rows("anna", 3), terms).settled().await;
    assert_eq!(words(&settled), ["released"], "what is behind it goes back with it");
    assert_eq!(harness.arrived().await, []);
}

pub(crate) async fn a_worker_that_stops_sends_nothing<H: Harness>() {
    let mut harness = H::start().await;
    let lane = deliver(&*harness.rail(), lanes::rows("anna", 3), Terms::stopping());
    assert_eq!(words(&lane.settled().await), ["released"]);
    assert_eq!(harness.arrived().await, []);
}

pub(crate) async fn giving_up_reports_everything<H: Harness>() {
    let mut harness = H::start().await;
    harness.hang().await;
    let rail = harness.rail();
    let lanes: Vec<_> = (0..5)
        .map(|number| deliver(&*rail, lanes::rows(&format!("p{number}"), 3), Terms::unordered()))
        .collect();
    rail.abandon().await;
    for lane in lanes {
        let settled = lane.settled().await;
        assert!(H::IN_BATCHES || settled.len() == 3, "{settled:?}");
        assert!(settled.iter().all(|settled| word(settled) != "delivered"), "{settled:?}");
    }
}

pub(crate) async fn nothing_is_sent_after_giving_up<H: Harness>() {
    let mut harness = H::start().await;
    let rail = harness.rail();
    rail.abandon().await;
    let settled = deliver(&*rail, lanes::rows("anna", 3), Terms::default()).settled().await;
    assert_eq!(words(&settled), ["released"]);
    assert_eq!(harness.arrived().await, []);
}

pub(crate) async fn payload_and_secrets_stay_out_of_outcomes<H: Harness>() {
    let mut said = String::new();
    for fault in ["none", "down", "hang", "lost answer"] {
        let mut harness = H::start().await;
        match fault {
            "down" => harness.go_down().await,
            "hang" => harness.hang().await,
            "lost answer" => harness.lose_answers().await,
            _ => {}
        }
        let mut rows = lanes::rows("anna", 2);
        harness.spoil(&mut rows[0]);
        rows[1].headers = vec![("x-private".to_owned(), "header-value".to_owned())];
        let settled = deliver(&*harness.rail(), rows, Terms::unordered()).settled().await;
        said.push_str(&format!("{settled:?}"));
        for secret in harness.secrets() {
            assert!(!said.contains(&secret), "{fault}: {said}");
        }
    }
    assert!(!said.contains(MARK) && !said.contains("header-value"), "{said}");
}

/// What is settled of an ordered lane of which nobody can say what became of it.
fn in_doubt<H: Harness>() -> &'static [&'static str] {
    if H::IN_BATCHES { &[] } else { &["in doubt"] }
}

fn arrival(row: &Row) -> Arrival {
    Arrival { outbox_id: row.outbox_id, payload: row.payload.clone() }
}
