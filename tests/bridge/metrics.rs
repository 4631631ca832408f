//! What running bridges show after known traffic, compared with what the database says.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use tokio_postgres::Client;

use crate::probes::{Probes, Scrape};
use crate::process::Bridge;
use crate::rows::{count, enqueue, wait_for};
use crate::support::{Database, Topic};
use crate::web::Bank;

/// Appears with its first event, and there was none.
const UNSEEN: &str = "concurrency_events_total";

struct Scene {
    database: Database,
    bridges: Vec<(Bridge, Probes)>,
    _topic: Topic,
}

impl Scene {
    /// Two bridges with a broker and a bank, and nobody who carries dead letters or runs `swift`.
    async fn new() -> Self {
        let (database, topic) = (Database::new().await, Topic::new().await);
        let bank = Bank::open(StatusCode::UNPROCESSABLE_ENTITY).await;
        let kafka = format!(
            "schema = \"any\"\n[rails.kafka]\nkind = \"kafka\"\ntopic = \"{}\"\nschema = \"any\"\n",
            topic.name()
        );
        let setup = bank.setup(&database).await.and(&kafka);
        let bridges = [&setup, &setup].map(|setup| {
            let (setup, probes) = Probes::of(setup.clone());
            (setup.run(), probes)
        });
        let scene = Self { database, bridges: bridges.into(), _topic: topic };
        scene.traffic(&bank).await;
        scene
    }

    async fn traffic(&self, bank: &Bank) {
        let client = self.database.connect().await;
        enqueue(&client, "kafka", 3, 30).await;
        enqueue(&client, "bank", 1, 1).await;
        wait_for(&self.database, "SELECT count(*) = 1 FROM outbox.payment_outbox_failures").await;
        bank.answer(StatusCode::INTERNAL_SERVER_ERROR);
        enqueue(&client, "bank", 1, 1).await;
        wait_for(
            &self.database,
            "SELECT count(*) > 0 FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE'",
        )
        .await;
        bank.answer(StatusCode::OK);
        waiting_rows(&client).await;
        wait_for(&self.database, "SELECT count(*) = 6 AND bool_and(lease_token IS NULL) FROM outbox.payment_outbox_pending").await;
    }

    /// A scrape of each bridge that shows a sample of now.
    async fn scrapes(&self) -> Vec<Scrape> {
        let mut scrapes = Vec::new();
        for (_, probes) in &self.bridges {
            let whole = |scrape: &Scrape| {
                let shows = |series, value| scrape.value(series) == Some(value);
                shows("outbox_pending_depth", 6.0)
                    && shows(r#"outbox_lanes{state="leased"}"#, 0.0)
                    && shows("outbox_workers", 2.0)
            };
            scrapes.push(probes.scrape(whole).await);
        }
        scrapes
    }
}

/// Rows that stay: paused, delayed, behind a delayed one, for nobody. With the dead letter that makes six.
async fn waiting_rows(client: &Client) {
    const ROWS: &str = "SELECT outbox.pause_outbox_lane('paused', 'kafka', 'ops', 'why');
        SELECT outbox.enqueue_payment_outbox('i' || n, p, 'k', r, '{}', p_not_before => now() + d::interval)
        FROM (VALUES (1, 'paused', 'kafka', '0'), (2, 'delayed', 'kafka', '1 day'), (3, 'blocked', 'kafka', '1 day'),
                     (4, 'blocked', 'kafka', '0'), (5, 'nobody', 'swift', '0')) AS v (n, p, r, d) ORDER BY n";
    client.batch_execute(ROWS).await.unwrap();
}

/// A metric, its type and the names of its labels.
type Described = (String, String, BTreeSet<String>);

/// Each metric as the page has it.
fn documented() -> BTreeSet<Described> {
    let rows = include_str!("../../docs/metrics.md").lines().filter(|row| row.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().replace('`', "")));
    let metrics = cells.filter_map(|mut cells| Some((cells.nth(1)?, cells.next()?, cells.next()?)));
    let metrics =
        metrics.filter(|(_, kind, _)| ["gauge", "counter", "histogram"].contains(&kind.as_str()));
    metrics.map(|(name, kind, labels)| (name, kind, words(&labels))).collect()
}

fn words(labels: &str) -> BTreeSet<String> {
    let labels = labels.split(", ").filter(|label| !label.is_empty());
    labels.map(str::to_owned).collect()
}

/// Each metric as a bridge shows it.
fn shown(scrape: &Scrape) -> BTreeSet<Described> {
    let types = scrape.types.iter();
    types.map(|(name, kind)| (name.clone(), kind.clone(), labels(scrape, name))).collect()
}

/// Of all series of this metric; a bucket's bound is the format's own.
fn labels(scrape: &Scrape, metric: &str) -> BTreeSet<String> {
    let labelled = scrape.series.keys().filter_map(|series| series.split_once('{'));
    let ours = labelled.filter(|(name, _)| name.strip_suffix("_bucket").unwrap_or(name) == metric);
    let pairs = ours.flat_map(|(_, pairs)| pairs.trim_end_matches('}').split(','));
    let names = pairs.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
    names.filter(|name| name != "le").collect()
}

async fn ask(database: &Database, question: &str) -> f64 {
    let question = format!("SELECT ({question})::float8");
    database.connect().await.query_one(&question, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn names_types_labels_and_values_are_those_of_the_page_and_of_the_database() {
    let scene = Scene::new().await;
    let scrapes = scene.scrapes().await;
    for scrape in &scrapes {
        names_types_and_labels(scrape);
        sampled_values(&scene.database, scrape).await;
    }
    counted_values(&scene.database, &scrapes).await;
}

fn names_types_and_labels(scrape: &Scrape) {
    let mut expected = documented();
    expected.retain(|(name, ..)| name != UNSEEN);
    // Neither rail of the scene delivers exactly once.
    expected.retain(|(name, ..)| !name.starts_with("shard_") && name != "owned_shards");
    // A failure is counted where it happened.
    expected.retain(|(name, ..)| name != "rail_errors_total" || scrape.types.contains_key(name));
    assert_eq!(shown(scrape), expected);
    for rail in ["bank", "kafka"] {
        assert_eq!(scrape.value(&format!("rail_in_flight_rows{{rail=\"{rail}\"}}")), Some(0.0));
        assert_eq!(scrape.value(&format!("rail_breaker_open{{rail=\"{rail}\"}}")), Some(0.0));
    }
    let version = concat!("trestle_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
    assert_eq!(scrape.value(version), Some(1.0));
    let memory = scrape.value("process_resident_memory_bytes").unwrap();
    assert!((1e6..1e9).contains(&memory), "{memory} bytes");
}

/// The same on both bridges.
async fn sampled_values(database: &Database, scrape: &Scrape) {
    for (series, value) in [
        ("outbox_pending_depth_estimated", 0.0),
        ("stuck_dispatching_count", 0.0),
        ("relay_stalled", 0.0),
        ("ledger_default_partition_rows", 0.0),
        // The dead letter and the row of `swift`.
        ("unroutable_lanes", 2.0),
        (r#"outbox_lanes{state="due"}"#, 2.0),
        (r#"outbox_lanes{state="delayed"}"#, 1.0),
        (r#"outbox_lanes{state="blocked"}"#, 1.0),
        (r#"outbox_lanes{state="paused"}"#, 1.0),
        (r#"outbox_lanes{state="halted"}"#, 0.0),
    ] {
        assert_eq!(scrape.value(series), Some(value), "{series}");
    }
    // Of two bridges that sleep one waits for the key, for 10 s in a call.
    let snapshot = scrape.value("oldest_snapshot_age_seconds").unwrap();
    assert!(snapshot < 20.0, "somebody has held a snapshot for {snapshot} s");
    let open = "SELECT count(*) FROM outbox.payment_outbox_failures WHERE resolution IS NULL";
    assert_eq!(scrape.value("dlq_depth"), Some(ask(database, open).await));
    for (series, filter) in [
        ("oldest_pending_age_seconds", "true"),
        ("dlq_undelivered_age_seconds", "dead_letter_of IS NOT NULL"),
    ] {
        let oldest = format!(
            "SELECT extract(epoch FROM now() - min(created_at)) FROM outbox.payment_outbox_pending WHERE {filter}"
        );
        let (shown, now) = (scrape.value(series).unwrap(), ask(database, &oldest).await);
        // The sample is a few seconds old, more on a busy machine.
        assert!(shown > 0.0 && shown <= now && now - shown < 30.0, "{series}: {shown}, not {now}");
    }
}

/// Each bridge shows what it did itself: together they did what the ledger has.
async fn counted_values(database: &Database, scrapes: &[Scrape]) {
    let sum = |series: &str| scrapes.iter().filter_map(|scrape| scrape.value(series)).sum::<f64>();
    let mut all = 0.0;
    for state in ["DISPATCHED", "RETRYABLE", "FAILED", "ZOMBIE_REQUEUE"] {
        let attempts = count(database, state).await as f64;
        assert_eq!(sum(&format!("attempts_total{{state=\"{state}\"}}")), attempts, "{state}");
        all += attempts;
    }
    assert_eq!(sum("claimed_rows_total"), all);
    assert_eq!(sum("completion_batch_rows_sum"), all);
    let claims =
        "SELECT count(*) FROM outbox.payment_outbox_events WHERE event_type = 'LEASE_CLAIMED'";
    assert_eq!(sum("claim_batches_total"), ask(database, claims).await);
    for histogram in ["dispatch_latency_ms", "delivery_latency_seconds"] {
        let delivered = count(database, "DISPATCHED").await as f64;
        assert_eq!(sum(&format!("{histogram}_count")), delivered, "{histogram}");
        assert_eq!(sum(&format!("{histogram}_bucket{{le=\"+Inf\"}}")), delivered, "{histogram}");
    }
    // In milliseconds, as in the ledger, and in seconds.
    let ledger =
        "SELECT sum(latency_ms) FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'";
    let (shown, ledger) = (sum("dispatch_latency_ms_sum"), ask(database, ledger).await);
    assert!((ledger - 1.0..ledger + 40.0).contains(&shown), "{shown} ms, not {ledger} ms");
    assert!(sum("delivery_latency_seconds_sum") < 120.0);
    for (code, state) in [("HTTP_422", "FAILED"), ("HTTP_500", "RETRYABLE")] {
        let errors = sum(&format!("rail_errors_total{{rail=\"bank\",code=\"{code}\"}}"));
        assert_eq!(errors, count(database, state).await as f64, "{code}");
    }
    for none in ["reaper_requeues_total", "lease_lost_total", "integrity_violations_total"] {
        assert_eq!(sum(none), 0.0, "{none}");
    }
}
