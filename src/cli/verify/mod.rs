//! `trestle verify`: reads a topic to its end and compares it with the ledger.
//!
//! The topic is read first, up to where it went at the start; then the ledger, so that every record
//! that was read can have its row. What the ledger has only since then is looked at a second time.

mod compare;
mod findings;
mod lanes;
mod report;
mod seen;
mod target;

use std::io::IsTerminal as _;
use std::time::{Duration, SystemTime};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::compare::Comparison;
use self::report::Report;
use self::seen::Seen;
use self::target::Target;
use super::since::seconds;
use super::{CliError, connect_current};
use crate::config::Config;
use crate::rails::kafka::{ReadError, Reader, Span};
use crate::store::{DeliveryFilter, Store};

/// How many rows in doubt are looked up at once.
const LOOK_UP: usize = 10_000;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The Kafka rail whose brokers and properties are used, or `dlq` [default: the only one]
    #[arg(long, value_name = "NAME")]
    rail: Option<String>,
    /// The topic to read [default: the rail's]
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    /// Only records of this time: 90s, 30m, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    since: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let target = Target::choose(config, args.rail.as_deref(), args.topic.as_deref())?;
    let store = connect_current(config).await?;
    let started = store.clock().await?;
    let since = args.since.and_then(|ago| started.checked_sub(Duration::from_secs(ago.into())));
    let (seen, spans) = read(&target, since).await?;
    let partitions = spans.len();
    let mut comparison = Comparison::new(&target.topic, seen, spans);
    let filter = DeliveryFilter {
        topic: &target.topic,
        other_rails: &target.other_rails,
        since,
        late_from: started,
    };
    compare(&store, &filter, &mut comparison).await?;
    Report::of(&target.topic, target.rail, partitions, &comparison).show(args.json)
}

/// Reads the topic in a thread of its own, because librdkafka waits there.
async fn read(
    target: &Target<'_>,
    since: Option<SystemTime>,
) -> Result<(Seen, Vec<Span>), CliError> {
    let (rail, kafka, topic) = (target.rail.to_owned(), target.kafka.clone(), target.topic.clone());
    let mut seen = Seen::new(target.unordered.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let reader = Reader::open(&rail, &kafka, &topic, since)?;
        let bar = progress(reader.records());
        let spans = reader.read(|record| {
            seen.take(record);
            bar.inc(1);
        });
        bar.finish_and_clear();
        Ok::<_, ReadError>((seen, spans?))
    });
    match reading.await {
        Ok(read) => Ok(read?),
        Err(error) => Err(CliError::Runtime(error.into())),
    }
}

async fn compare(
    store: &Store,
    filter: &DeliveryFilter<'_>,
    comparison: &mut Comparison<'_>,
) -> Result<(), CliError> {
    let mut rows = store.deliveries(filter).await?;
    while let Some(row) = rows.next().await? {
        comparison.take(&row);
    }
    let in_doubt = comparison.in_doubt();
    let hot_from = if in_doubt.is_empty() { None } else { store.hot_from().await? };
    for ids in in_doubt.chunks(LOOK_UP) {
        for (id, fate) in store.fates(ids).await? {
            comparison.settle(id, &fate, hot_from);
        }
    }
    Ok(())
}

/// On stderr, and only when it is a terminal.
fn progress(records: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{bar:40} {human_pos}/{human_len} records {per_sec} eta {eta}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(records), ProgressDrawTarget::stderr()).with_style(style)
}
