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
use self::report::{Report, Reports};
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
    /// The topic to read [default: the rail's; those that the ledger names, if each tenant has one]
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
    let now = store.clock().await?;
    let since = args.since.and_then(|ago| now.checked_sub(Duration::from_secs(ago.into())));
    let Some(topic) = &target.topic else {
        return each_topic(&store, &target, since, args.json).await;
    };
    let comparison = compared(&store, &target, topic, since).await?;
    Report::of(target.rail, &comparison).show(args.json)
}

/// One topic after the other, so that only one of them is kept in memory.
async fn each_topic(
    store: &Store,
    target: &Target<'_>,
    since: Option<SystemTime>,
    json: bool,
) -> Result<(), CliError> {
    let topics = store.topics_of(target.rail, since).await?;
    if topics.is_empty() {
        let (rail, template) = (target.rail, &target.kafka.topic);
        return Err(CliError::Refused(format!(
            "rails.{rail}.topic is {template:?}, and the ledger names no topic to which a row of it was \
             delivered: there is nothing to compare"
        )));
    }
    let mut reports = Reports::new(target.rail, json);
    for topic in &topics {
        let comparison = compared(store, target, topic, since).await?;
        reports.add(&Report::of(target.rail, &comparison))?;
    }
    reports.end()
}

/// Reads the topic, and then the ledger.
async fn compared<'a>(
    store: &Store,
    target: &Target<'_>,
    topic: &'a str,
    since: Option<SystemTime>,
) -> Result<Comparison<'a>, CliError> {
    let late_from = store.clock().await?;
    let (seen, spans) = read(target, topic, since).await?;
    let mut comparison = Comparison::new(topic, seen, spans);
    let filter = DeliveryFilter { topic, other_rails: &target.other_rails, since, late_from };
    compare(store, &filter, &mut comparison).await?;
    Ok(comparison)
}

/// Reads the topic in a thread of its own, because librdkafka waits there.
async fn read(
    target: &Target<'_>,
    topic: &str,
    since: Option<SystemTime>,
) -> Result<(Seen, Vec<Span>), CliError> {
    let (rail, kafka, topic) = (target.rail.to_owned(), target.kafka.clone(), topic.to_owned());
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
