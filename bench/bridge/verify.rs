//! A topic of a million records against a ledger of as many rows.

use std::time::{Duration, Instant};

use crate::bridge::Bridge;
use crate::database::Database;
use crate::report::{Bound, Report};
use crate::topic::{self, PARTITIONS};

const ROWS: u32 = 1_000_000;

/// Rows as the bridge would have recorded them; ids count up from `$1`, which has room for it.
const LEDGER: &str = "INSERT INTO outbox.payment_outbox_attempts (attempt_id, outbox_id, instruction_id, participant_id,
      sequence_id, idempotency_key, rail_type, payload, headers, attempt_no, state, claimed_at, completed_at, created_at,
      rail_reference, worker_id, lease_token)
    SELECT gen_random_uuid(), ($1::text || lpad(to_hex(g), 12, '0'))::uuid, 'instruction-' || g, 'participant-' || g % $2::int8,
      g / $2::int8 + 1, 'payment', 'kafka', jsonb_build_object('amount', '10.00', 'currency', 'EUR', 'note', repeat('x', 450)), '{}', 1,
      'DISPATCHED', now(), now(), now(), $3::text || '/' || g % $2::int8 % $4::int8 || '@' || row_number() OVER (PARTITION BY g % $2::int8 % $4::int8 ORDER BY g) - 1,
      'worker', gen_random_uuid()
    FROM generate_series(0::int8, $5::int8 - 1) AS g";
/// What the ids of this moment begin with.
const PREFIX: &str =
    "SELECT left(outbox.uuidv7_floor(clock_timestamp())::text, 14) || '7000-8000-'";

pub(crate) async fn verify(report: &mut Report) {
    for participants in [1_000, ROWS] {
        let database = Database::new("verify").await;
        let topic = topic::make("verify").await;
        let client = database.connect().await;
        let prefix: String = client.query_one(PREFIX, &[]).await.unwrap().get(0);
        let partitions = i64::from(PARTITIONS);
        let (rows, each) = (i64::from(ROWS), i64::from(participants));
        client.execute(LEDGER, &[&prefix, &each, &topic, &partitions, &rows]).await.unwrap();
        // As on a server that has been up for a while.
        client.batch_execute("VACUUM ANALYZE outbox.payment_outbox_attempts").await.unwrap();
        let name = topic.clone();
        let written = tokio::task::spawn_blocking(move || {
            topic::fill(&name, ROWS, participants, &prefix);
        });
        written.await.unwrap();
        let began = Instant::now();
        let mut verify = Bridge::start("verify", &database.url(), &topic);
        verify.ended().await;
        show(report, participants, began.elapsed(), &verify);
    }
}

fn show(report: &mut Report, participants: u32, took: Duration, verify: &Bridge) {
    let case = format!("verify of {ROWS} records of {participants} participants");
    let figures =
        format!("{:.1} s, processor {:.1} s", took.as_secs_f64(), verify.cpu().as_secs_f64());
    report.ratio(&format!("{case}: seconds"), figures, took.as_secs_f64(), Bound::AtMost(60.0));
    let peak = verify.peak_mb();
    report.ratio(
        &format!("{case}: MB at its peak"),
        format!("{peak:.0} MB"),
        peak,
        Bound::AtMost(200.0),
    );
}
