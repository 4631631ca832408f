//! Looks at the brokers now and then, besides what the shards do.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::admin::AdminClient;
use rdkafka::config::{FromClientConfigAndContext as _, RDKafkaLogLevel};
use rdkafka::types::RDKafkaErrorCode as Code;
use tracing::{debug, info};

use super::super::callbacks::Log;
use super::shared::Shared;
use super::survey;
use crate::failpoint::hurried;

/// What we know of the ends of topics is never much older. Others write to them too, what the database remembers must
/// not fall behind what retention deletes, and whoever takes a shard over reads from there on.
pub(super) const KEEP_UP: Duration = Duration::from_secs(15);
/// How often is looked whether something is due.
const TICK: Duration = Duration::from_millis(200);
/// How often a broker is asked for a sign of life, when nothing else asks one.
const SEEK: Duration = Duration::from_secs(5);

pub(super) fn start(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    let thread = thread::Builder::new().name("kafka-watch".to_owned());
    if let Err(error) = thread.spawn(move || watch(&shared)) {
        // Takeovers read more than they need to, and we do not come back from an abstention.
        tracing::error!(%error, "no thread that watches the brokers");
    }
}

fn watch(shared: &Shared) {
    let (mut surveyed, mut sought, mut asker) = (Instant::now(), Instant::now(), None);
    while !shared.is_closing() {
        thread::sleep(TICK);
        if surveyed.elapsed() >= hurried(KEEP_UP) && !shared.abstention.is_on() {
            if let Err(code) = survey(shared) {
                debug!(rail = shared.rail(), %code, "where the topics end is not known anew");
            }
            surveyed = Instant::now();
        }
        let is_due = shared.abstention.may_end() || !shared.abstention.is_on();
        let is_quiet = shared.contact.silent_for().min(sought.elapsed()) >= hurried(SEEK);
        if is_due && is_quiet {
            if answers(shared, &mut asker) && shared.abstention.is_on() {
                info!(rail = shared.rail(), "a broker answers: asking for shards again");
                shared.abstention.end();
            }
            sought = Instant::now();
        }
    }
}

/// Learns where every topic that we know of ends.
fn survey(shared: &Shared) -> Result<(), Code> {
    for topic in shared.reach.topics() {
        match shared.bounds(&topic)? {
            Some(bounds) => shared.reach.learn(&topic, &survey::ends_of(&bounds)),
            None => shared.reach.forget(&topic),
        }
    }
    Ok(())
}

/// Whether a broker says anything about the register, be it that there is none.
fn answers(shared: &Shared, asker: &mut Option<AdminClient<Log>>) -> bool {
    let silent_for = shared.contact.silent_for();
    if asker.is_none() {
        let mut config = shared.settings.properties.admin();
        config.set_log_level(RDKafkaLogLevel::Error);
        *asker = AdminClient::from_config_and_context(&config, shared.settings.log.clone()).ok();
    }
    if let Some(asker) = asker {
        let _ = shared.partitions(asker.inner(), &shared.register_topic);
    }
    shared.contact.silent_for() < silent_for
}
