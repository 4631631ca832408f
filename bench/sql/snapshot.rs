//! Somebody's report holds a snapshot open for five minutes of load.

use std::time::{Duration, Instant};

use crate::database::Database;
use crate::drain::{Drained, Workers};
use crate::report::{Bound, Report};

const HELD: Duration = Duration::from_secs(300);
const PARTICIPANTS: usize = 1_000;
const ROUND: usize = 10_000;

pub(crate) async fn held(report: &mut Report) {
    let (plain, held) = (Database::new("plain").await, Database::new("held").await);
    let (plain_workers, held_workers) = (Workers::new(&plain).await, Workers::new(&held).await);
    // Both sides know the tables before the snapshot is taken.
    one_round(&plain, &plain_workers, "warm-up").await;
    one_round(&held, &held_workers, "warm-up").await;
    let reader = held.connect().await;
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox.payment_outbox_pending").await.unwrap();

    // Time counts while the database with the snapshot is under load; the plain one takes turns with it.
    let mut minutes = vec![(Drained::default(), Drained::default()); 5];
    let mut loaded = Duration::ZERO;
    let mut round = 0;
    while loaded < HELD {
        let minute = usize::try_from(loaded.as_secs() / 60).unwrap();
        minutes[minute].0.add(one_round(&plain, &plain_workers, &format!("r{round}")).await);
        let began = Instant::now();
        minutes[minute].1.add(one_round(&held, &held_workers, &format!("r{round}")).await);
        loaded += began.elapsed();
        round += 1;
    }
    reader.batch_execute("ROLLBACK").await.unwrap();
    tell(report, &minutes);
}

async fn one_round(database: &Database, workers: &Workers, tag: &str) -> Drained {
    // The same participants every time: their lanes come and go, as in life.
    database.fill(ROUND, PARTICIPANTS, tag).await;
    workers.drain(ROUND).await
}

fn tell(report: &mut Report, minutes: &[(Drained, Drained)]) {
    let ratios: Vec<f64> =
        minutes.iter().map(|(plain, held)| plain.per_second() / held.per_second()).collect();
    let text: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    let figures = format!("× plain by minute: {}", text.join(", "));
    report.ratio(
        "a snapshot held for five minutes under load",
        figures.clone(),
        ratios.iter().sum::<f64>() / 5.0,
        Bound::AtMost(2.0),
    );
    report.ratio(
        "its last minute against the one before",
        figures,
        ratios[4] / ratios[3],
        Bound::AtMost(1.1),
    );
}
