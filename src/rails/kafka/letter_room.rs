//! Whether a dead letter has room in its topic.
//!
//! It carries value and headers of the row that failed, and why it did. One that is too large is
//! shortened, which nobody wants to find out from the first: the brokers are asked at the start.

use std::sync::Arc;
use std::thread;

use tracing::{debug, warn};

use super::inquiry::{LIMIT, ask_limit};
use super::settings::Settings;
use crate::config::KafkaRailConfig;

/// Looks in the background, once. Where it cannot be found out, nothing is said: the first dead
/// letter asks for its topic again.
pub(super) fn look(settings: Arc<Settings>, letters: &str, payments: &KafkaRailConfig) {
    let letters = letters.to_owned();
    // What a template makes has no name yet, or one for each tenant.
    let topics = [&payments.topic].into_iter().chain(&payments.topics);
    let topics: Vec<String> = topics.filter(|topic| !topic.contains('{')).cloned().collect();
    let looking = thread::Builder::new().name("kafka-dlq-room".to_owned());
    // Without a thread there is one warning less, and nothing else.
    let _ = looking.spawn(move || {
        let mut admin = None;
        let Some(room) = ask_limit(&settings, &letters, &mut admin) else { return };
        for topic in topics {
            let Some(needed) = ask_limit(&settings, &topic, &mut admin) else { continue };
            if room >= needed {
                debug!(rail = &*settings.log.rail, topic, "its dead letters have room");
            } else {
                warn!(
                    rail = &*settings.log.rail,
                    "{LIMIT} of dlq.topic {letters} is {room}, but {needed} of {topic}: a dead letter of a large row \
                     would arrive without its value and headers. Give {letters} at least {needed}"
                );
            }
        }
    });
}
