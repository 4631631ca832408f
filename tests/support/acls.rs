//! Carries out a `kafka-acls.sh --add` line: the broker's jars have no such tool, and `rdkafka` no such call.
#![allow(unsafe_code, reason = "librdkafka's CreateAcls has no safe wrapper")]

use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

use rdkafka::bindings as native;
use rdkafka::config::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::types::RDKafkaRespErr;

use native::rd_kafka_AclOperation_t as Operation;

const PATIENCE_MS: i32 = 30_000;

/// What follows each `--name` in the line.
fn values<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let words = line.split_whitespace();
    words.clone().zip(words.skip(1)).filter(move |(word, _)| *word == name).map(|(_, value)| value)
}

fn operation(name: &str) -> Operation {
    match name {
        "Read" => Operation::RD_KAFKA_ACL_OPERATION_READ,
        "Write" => Operation::RD_KAFKA_ACL_OPERATION_WRITE,
        "Delete" => Operation::RD_KAFKA_ACL_OPERATION_DELETE,
        "Describe" => Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE,
        "DescribeConfigs" => Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS,
        other => panic!("{other} is not an operation that a test needs"),
    }
}

/// Gives `user` what the line gives, by way of a listener where that is allowed.
pub(crate) fn carry_out(line: &str, user: &str, brokers: &str) {
    assert!(line.starts_with("kafka-acls.sh ") && line.contains(" --add "), "{line}");
    assert!(line.contains(" --allow-principal User:… "), "{line}");
    let text = |text: &str| CString::new(text).unwrap();
    let (user, everywhere) = (text(&format!("User:{user}")), text("*"));
    let kind = if line.contains(" --resource-pattern-type prefixed") {
        native::rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_PREFIXED
    } else {
        native::rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_LITERAL
    };
    let of = |resource, name| values(line, name).map(move |value| (resource, text(value)));
    let topics = of(native::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC, "--topic");
    let ids = of(
        native::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TRANSACTIONAL_ID,
        "--transactional-id",
    );
    let mut acls = Vec::new();
    for (resource, name) in topics.chain(ids) {
        for operation in values(line, "--operation").map(operation) {
            // SAFETY: it copies the strings, which live until then.
            acls.push(unsafe {
                native::rd_kafka_AclBinding_new(
                    resource,
                    name.as_ptr(),
                    kind,
                    user.as_ptr(),
                    everywhere.as_ptr(),
                    operation,
                    native::rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW,
                    null_mut(),
                    0,
                )
            });
        }
    }
    assert!(!acls.is_empty() && !acls.iter().any(|acl| acl.is_null()), "{line}");
    let client: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let client = client.client().native_ptr();
    // SAFETY: the client lives until the end; what is made here is destroyed here, after its last use.
    unsafe {
        let queue = native::rd_kafka_queue_new(client);
        native::rd_kafka_CreateAcls(client, acls.as_mut_ptr(), acls.len(), null(), queue);
        let event = native::rd_kafka_queue_poll(queue, PATIENCE_MS);
        assert!(!event.is_null(), "the broker says nothing");
        let said = CStr::from_ptr(native::rd_kafka_event_error_string(event)).to_owned();
        let no_error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
        assert_eq!(native::rd_kafka_event_error(event), no_error, "{said:?}");
        let (mut count, result) = (0, native::rd_kafka_event_CreateAcls_result(event));
        let results = native::rd_kafka_CreateAcls_result_acls(result, &mut count);
        for number in 0..count {
            let error = native::rd_kafka_acl_result_error(*results.add(number));
            assert_eq!(native::rd_kafka_error_code(error), no_error, "{line}");
        }
        native::rd_kafka_event_destroy(event);
        native::rd_kafka_queue_destroy(queue);
        native::rd_kafka_AclBinding_destroy_array(acls.as_mut_ptr(), acls.len());
    }
}
