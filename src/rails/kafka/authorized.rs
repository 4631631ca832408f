//! What a broker lets us do with a topic, without it being tried.
//!
//! `rdkafka` has no call for it, so librdkafka is asked directly: the only unsafe code of this project.
#![allow(unsafe_code, reason = "librdkafka's DescribeTopics has no safe wrapper")]

use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::time::Duration;

use rdkafka::admin::AdminClient;
use rdkafka::bindings as native;
use rdkafka::client::ClientContext;
use rdkafka::types::RDKafkaRespErr;

/// An operation that an ACL of a topic allows or denies, by its number in Kafka's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Delete = 6,
    Alter = 7,
    Describe = 8,
    DescribeConfigs = 10,
    AlterConfigs = 11,
}

impl Operation {
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Delete,
        Self::Alter,
        Self::Describe,
        Self::DescribeConfigs,
        Self::AlterConfigs,
    ];

    fn numbered(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as u32 == number)
    }
}

/// What may be done with this topic; nothing where the broker does not say. Not to be called by a task
/// of a runtime: it waits.
pub(super) fn authorized<C: ClientContext>(
    admin: &AdminClient<C>,
    topic: &str,
    timeout: Duration,
) -> Option<Vec<Operation>> {
    let name = CString::new(topic).ok()?;
    let mut names = [name.as_ptr()];
    let timeout_ms = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
    let client = admin.inner().native_ptr();
    // SAFETY: the client is borrowed from `admin`, and the name outlives the call that copies it. What
    // is made here is destroyed here, once and after its last use; librdkafka itself keeps what a
    // request under way still needs. There need be no error and no event: it takes null for both.
    unsafe {
        let queue = native::rd_kafka_queue_new(client);
        let topics = native::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), 1);
        let options = native::rd_kafka_AdminOptions_new(
            client,
            native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
        );
        native::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, null_mut(), 0);
        let refused = native::rd_kafka_AdminOptions_set_include_authorized_operations(options, 1);
        native::rd_kafka_error_destroy(refused);
        native::rd_kafka_DescribeTopics(client, topics, options, queue);
        let event = native::rd_kafka_queue_poll(queue, timeout_ms);
        let operations = operations(event);
        native::rd_kafka_event_destroy(event);
        native::rd_kafka_AdminOptions_destroy(options);
        native::rd_kafka_TopicCollection_destroy(topics);
        native::rd_kafka_queue_destroy(queue);
        operations
    }
}

/// The operations in the answer to a question about one topic.
///
/// # Safety
/// `event` is null or an event that has not been destroyed.
unsafe fn operations(event: *mut native::rd_kafka_event_t) -> Option<Vec<Operation>> {
    // SAFETY: every pointer is looked at before it is used, and belongs to the event, which outlives it.
    // librdkafka says how long its arrays are. Numbers are read as numbers: not each of them need be one
    // of the names that the bindings know.
    unsafe {
        let result =
            event.as_mut().map(|event| native::rd_kafka_event_DescribeTopics_result(event));
        let result = result.filter(|result| !result.is_null())?;
        let mut count = 0;
        let topics = native::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        if topics.is_null() || count != 1 {
            return None;
        }
        let error = native::rd_kafka_TopicDescription_error(*topics);
        if native::rd_kafka_error_code(error) != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        let allowed = native::rd_kafka_TopicDescription_authorized_operations(*topics, &mut count);
        if allowed.is_null() {
            return None;
        }
        let allowed = std::slice::from_raw_parts(allowed.cast::<u32>(), count);
        Some(allowed.iter().copied().filter_map(Operation::numbered).collect())
    }
}
