//! What must not make a claim or a completion dearer.

use crate::database::Database;
use crate::drain::{Drained, Workers};
use crate::report::{Bound, Report};

const ROWS: usize = 200_000;
const PARTICIPANTS: usize = 1_000;
/// Rows that each side drains before it is the other's turn.
const ROUND: usize = 20_000;
const FLAT: Bound = Bound::AtMost(1.25);

pub(crate) async fn plain(report: &mut Report) {
    let database = Database::new("plain").await;
    database.fill(ROWS, PARTICIPANTS, "plain").await;
    let drained = Workers::new(&database).await.drain(ROWS).await;
    report.figure(
        "claim + complete, 200,000 rows, 1,000 participants, 2 workers",
        rows_per_second(drained),
    );

    let database = Database::new("single").await;
    database.fill(100_000, 100_000, "single").await;
    let drained = Workers::new(&database).await.drain(100_000).await;
    report.figure("the same, 100,000 participants with one row each", rows_per_second(drained));
}

pub(crate) async fn one_participant_in_front(report: &mut Report) {
    let case = Database::new("front").await;
    case.fill(1_000_000, 1, "front").await;
    case.fill(ROWS, PARTICIPANTS, "rest").await;
    compare(report, "1,000,000 rows of one participant in front", &case).await;
}

pub(crate) async fn blocked_lanes(report: &mut Report) {
    let case = Database::new("blocked").await;
    case.fill(100_000, 100_000, "blocked").await;
    // Half wait for their backoff, half are paused.
    case.run(
        "UPDATE outbox.payment_outbox_pending SET next_attempt_at = next_attempt_at + interval '1 day' WHERE sequence_id = 1;
         UPDATE outbox.payment_outbox_turns SET due_at = due_at + interval '1 day' WHERE lane_id % 2 = 0;
         UPDATE outbox.payment_outbox_lanes SET paused_at = now(), paused_by = 'bench', paused_reason = 'bench' WHERE lane_id % 2 = 1;
         DELETE FROM outbox.payment_outbox_turns WHERE lane_id % 2 = 1;",
    )
    .await;
    case.fill(ROWS, PARTICIPANTS, "rest").await;
    compare(report, "100,000 blocked lanes", &case).await;
}

pub(crate) async fn deep_backlog(report: &mut Report) {
    let deep = Database::new("deep").await;
    deep.fill(3_000_000, PARTICIPANTS, "deep").await;
    let shallow = Database::new("shallow").await;
    settle(&deep, &shallow).await;
    let (deep_workers, shallow_workers) = (Workers::new(&deep).await, Workers::new(&shallow).await);
    let (mut of_deep, mut of_shallow) = (Drained::default(), Drained::default());
    for round in 0..20 {
        shallow.fill(10_000, PARTICIPANTS, &format!("shallow-{round}")).await;
        of_shallow.add(shallow_workers.drain(10_000).await);
        of_deep.add(deep_workers.drain(10_000).await);
    }
    tell(report, "3,000,000 rows of backlog against 10,000", of_shallow, of_deep);
}

async fn compare(report: &mut Report, name: &str, case: &Database) {
    let plain = Database::new("plain").await;
    plain.fill(ROWS, PARTICIPANTS, "plain").await;
    settle(case, &plain).await;
    let (case_workers, plain_workers) = (Workers::new(case).await, Workers::new(&plain).await);
    let (mut of_case, mut of_plain) = (Drained::default(), Drained::default());
    for _ in 0..ROWS / ROUND {
        of_plain.add(plain_workers.drain(ROUND).await);
        of_case.add(case_workers.drain(ROUND).await);
    }
    tell(report, name, of_plain, of_case);
}

/// The same start for both: statistics known, nothing left to write out.
async fn settle(one: &Database, other: &Database) {
    for database in [one, other] {
        database.run("ANALYZE").await;
        database.run("CHECKPOINT").await;
    }
}

fn tell(report: &mut Report, name: &str, plain: Drained, case: Drained) {
    let figures = format!("plain {}, so {}", rows_per_second(plain), rows_per_second(case));
    report.ratio(name, figures, plain.per_second() / case.per_second(), FLAT);
}

fn rows_per_second(drained: Drained) -> String {
    format!("{:.0} rows/s", drained.per_second())
}
