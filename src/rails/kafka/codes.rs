//! Every error code of librdkafka, its name and what it means for a row.

use rdkafka::types::RDKafkaErrorCode as Code;

use crate::delivery::Class;

const TERMINAL: Class = Class::Terminal;
const RETRYABLE: Class = Class::Retryable;
const UNAVAILABLE: Class = Class::Unavailable;

/// What the names of our error codes begin with: `KAFKA_MSG_SIZE_TOO_LARGE`.
pub(super) const PREFIX: &str = "KAFKA_";

/// The names are librdkafka's own, without the underscore that marks its local errors.
///
/// What concerns the cluster, the topic, our rights or our identity is unavailable: it hits every
/// row alike and is mended by an operator, so no row may fail for it. Terminal is only what a broker
/// says of the record itself. What no producer is ever told (groups, fetches, deserialisers) is
/// retryable, like a code that nobody knows.
const TABLE: &[(Code, &str, Class)] = &[
    (Code::BadMessage, "BAD_MSG", RETRYABLE),
    (Code::BadCompression, "BAD_COMPRESSION", RETRYABLE),
    (Code::BrokerDestroy, "DESTROY", UNAVAILABLE),
    (Code::Fail, "FAIL", RETRYABLE),
    (Code::BrokerTransportFailure, "TRANSPORT", UNAVAILABLE),
    (Code::CriticalSystemResource, "CRIT_SYS_RESOURCE", UNAVAILABLE),
    (Code::Resolve, "RESOLVE", UNAVAILABLE),
    (Code::MessageTimedOut, "MSG_TIMED_OUT", UNAVAILABLE),
    (Code::PartitionEOF, "PARTITION_EOF", RETRYABLE),
    (Code::UnknownPartition, "UNKNOWN_PARTITION", UNAVAILABLE),
    (Code::FileSystem, "FS", RETRYABLE),
    (Code::UnknownTopic, "UNKNOWN_TOPIC", UNAVAILABLE),
    (Code::AllBrokersDown, "ALL_BROKERS_DOWN", UNAVAILABLE),
    (Code::InvalidArgument, "INVALID_ARG", RETRYABLE),
    (Code::OperationTimedOut, "TIMED_OUT", UNAVAILABLE),
    (Code::QueueFull, "QUEUE_FULL", UNAVAILABLE),
    (Code::ISRInsufficient, "ISR_INSUFF", UNAVAILABLE),
    (Code::NodeUpdate, "NODE_UPDATE", UNAVAILABLE),
    (Code::SSL, "SSL", UNAVAILABLE),
    (Code::WaitingForCoordinator, "WAIT_COORD", UNAVAILABLE),
    (Code::UnknownGroup, "UNKNOWN_GROUP", RETRYABLE),
    (Code::InProgress, "IN_PROGRESS", RETRYABLE),
    (Code::PreviousInProgress, "PREV_IN_PROGRESS", RETRYABLE),
    (Code::ExistingSubscription, "EXISTING_SUBSCRIPTION", RETRYABLE),
    (Code::AssignPartitions, "ASSIGN_PARTITIONS", RETRYABLE),
    (Code::RevokePartitions, "REVOKE_PARTITIONS", RETRYABLE),
    (Code::Conflict, "CONFLICT", RETRYABLE),
    (Code::State, "STATE", RETRYABLE),
    (Code::UnknownProtocol, "UNKNOWN_PROTOCOL", RETRYABLE),
    (Code::NotImplemented, "NOT_IMPLEMENTED", RETRYABLE),
    (Code::Authentication, "AUTHENTICATION", UNAVAILABLE),
    (Code::NoOffset, "NO_OFFSET", RETRYABLE),
    (Code::Outdated, "OUTDATED", RETRYABLE),
    (Code::TimedOutQueue, "TIMED_OUT_QUEUE", UNAVAILABLE),
    (Code::UnsupportedFeature, "UNSUPPORTED_FEATURE", UNAVAILABLE),
    (Code::WaitCache, "WAIT_CACHE", UNAVAILABLE),
    (Code::Interrupted, "INTR", RETRYABLE),
    (Code::KeySerialization, "KEY_SERIALIZATION", RETRYABLE),
    (Code::ValueSerialization, "VALUE_SERIALIZATION", RETRYABLE),
    (Code::KeyDeserialization, "KEY_DESERIALIZATION", RETRYABLE),
    (Code::ValueDeserialization, "VALUE_DESERIALIZATION", RETRYABLE),
    (Code::Partial, "PARTIAL", RETRYABLE),
    (Code::ReadOnly, "READ_ONLY", RETRYABLE),
    (Code::NoEnt, "NOENT", RETRYABLE),
    (Code::Underflow, "UNDERFLOW", RETRYABLE),
    (Code::InvalidType, "INVALID_TYPE", RETRYABLE),
    (Code::Retry, "RETRY", UNAVAILABLE),
    (Code::PurgeQueue, "PURGE_QUEUE", UNAVAILABLE),
    (Code::PurgeInflight, "PURGE_INFLIGHT", UNAVAILABLE),
    (Code::Fatal, "FATAL", UNAVAILABLE),
    (Code::Inconsistent, "INCONSISTENT", UNAVAILABLE),
    (Code::GaplessGuarantee, "GAPLESS_GUARANTEE", UNAVAILABLE),
    (Code::PollExceeded, "MAX_POLL_EXCEEDED", RETRYABLE),
    (Code::UnknownBroker, "UNKNOWN_BROKER", UNAVAILABLE),
    (Code::NotConfigured, "NOT_CONFIGURED", RETRYABLE),
    (Code::Fenced, "FENCED", UNAVAILABLE),
    (Code::Application, "APPLICATION", RETRYABLE),
    (Code::AssignmentLost, "ASSIGNMENT_LOST", RETRYABLE),
    (Code::Noop, "NOOP", RETRYABLE),
    (Code::AutoOffsetReset, "AUTO_OFFSET_RESET", RETRYABLE),
    (Code::LogTruncation, "LOG_TRUNCATION", RETRYABLE),
    (Code::InvalidDifferentRecord, "INVALID_DIFFERENT_RECORD", UNAVAILABLE),
    (Code::DestroyBroker, "DESTROY_BROKER", UNAVAILABLE),
    (Code::Unknown, "UNKNOWN", RETRYABLE),
    (Code::OffsetOutOfRange, "OFFSET_OUT_OF_RANGE", RETRYABLE),
    (Code::InvalidMessage, "INVALID_MSG", RETRYABLE),
    (Code::UnknownTopicOrPartition, "UNKNOWN_TOPIC_OR_PART", UNAVAILABLE),
    (Code::InvalidMessageSize, "INVALID_MSG_SIZE", TERMINAL),
    (Code::LeaderNotAvailable, "LEADER_NOT_AVAILABLE", UNAVAILABLE),
    (Code::NotLeaderForPartition, "NOT_LEADER_FOR_PARTITION", UNAVAILABLE),
    (Code::RequestTimedOut, "REQUEST_TIMED_OUT", UNAVAILABLE),
    (Code::BrokerNotAvailable, "BROKER_NOT_AVAILABLE", UNAVAILABLE),
    (Code::ReplicaNotAvailable, "REPLICA_NOT_AVAILABLE", UNAVAILABLE),
    (Code::MessageSizeTooLarge, "MSG_SIZE_TOO_LARGE", TERMINAL),
    (Code::StaleControllerEpoch, "STALE_CTRL_EPOCH", UNAVAILABLE),
    (Code::OffsetMetadataTooLarge, "OFFSET_METADATA_TOO_LARGE", RETRYABLE),
    (Code::NetworkException, "NETWORK_EXCEPTION", UNAVAILABLE),
    (Code::CoordinatorLoadInProgress, "COORDINATOR_LOAD_IN_PROGRESS", UNAVAILABLE),
    (Code::CoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE", UNAVAILABLE),
    (Code::NotCoordinator, "NOT_COORDINATOR", UNAVAILABLE),
    (Code::InvalidTopic, "TOPIC_EXCEPTION", UNAVAILABLE),
    (Code::MessageBatchTooLarge, "RECORD_LIST_TOO_LARGE", TERMINAL),
    (Code::NotEnoughReplicas, "NOT_ENOUGH_REPLICAS", UNAVAILABLE),
    (Code::NotEnoughReplicasAfterAppend, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", UNAVAILABLE),
    (Code::InvalidRequiredAcks, "INVALID_REQUIRED_ACKS", UNAVAILABLE),
    (Code::IllegalGeneration, "ILLEGAL_GENERATION", RETRYABLE),
    (Code::InconsistentGroupProtocol, "INCONSISTENT_GROUP_PROTOCOL", RETRYABLE),
    (Code::InvalidGroupId, "INVALID_GROUP_ID", RETRYABLE),
    (Code::UnknownMemberId, "UNKNOWN_MEMBER_ID", RETRYABLE),
    (Code::InvalidSessionTimeout, "INVALID_SESSION_TIMEOUT", RETRYABLE),
    (Code::RebalanceInProgress, "REBALANCE_IN_PROGRESS", RETRYABLE),
    (Code::InvalidCommitOffsetSize, "INVALID_COMMIT_OFFSET_SIZE", RETRYABLE),
    (Code::TopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED", UNAVAILABLE),
    (Code::GroupAuthorizationFailed, "GROUP_AUTHORIZATION_FAILED", RETRYABLE),
    (Code::ClusterAuthorizationFailed, "CLUSTER_AUTHORIZATION_FAILED", UNAVAILABLE),
    (Code::InvalidTimestamp, "INVALID_TIMESTAMP", RETRYABLE),
    (Code::UnsupportedSASLMechanism, "UNSUPPORTED_SASL_MECHANISM", UNAVAILABLE),
    (Code::IllegalSASLState, "ILLEGAL_SASL_STATE", UNAVAILABLE),
    (Code::UnsupportedVersion, "UNSUPPORTED_VERSION", UNAVAILABLE),
    (Code::TopicAlreadyExists, "TOPIC_ALREADY_EXISTS", RETRYABLE),
    (Code::InvalidPartitions, "INVALID_PARTITIONS", RETRYABLE),
    (Code::InvalidReplicationFactor, "INVALID_REPLICATION_FACTOR", RETRYABLE),
    (Code::InvalidReplicaAssignment, "INVALID_REPLICA_ASSIGNMENT", RETRYABLE),
    (Code::InvalidConfig, "INVALID_CONFIG", RETRYABLE),
    (Code::NotController, "NOT_CONTROLLER", UNAVAILABLE),
    (Code::InvalidRequest, "INVALID_REQUEST", RETRYABLE),
    (Code::UnsupportedForMessageFormat, "UNSUPPORTED_FOR_MESSAGE_FORMAT", UNAVAILABLE),
    (Code::PolicyViolation, "POLICY_VIOLATION", RETRYABLE),
    (Code::OutOfOrderSequenceNumber, "OUT_OF_ORDER_SEQUENCE_NUMBER", UNAVAILABLE),
    (Code::DuplicateSequenceNumber, "DUPLICATE_SEQUENCE_NUMBER", RETRYABLE),
    (Code::InvalidProducerEpoch, "INVALID_PRODUCER_EPOCH", UNAVAILABLE),
    (Code::InvalidTransactionalState, "INVALID_TXN_STATE", RETRYABLE),
    (Code::InvalidProducerIdMapping, "INVALID_PRODUCER_ID_MAPPING", UNAVAILABLE),
    (Code::InvalidTransactionTimeout, "INVALID_TRANSACTION_TIMEOUT", RETRYABLE),
    (Code::ConcurrentTransactions, "CONCURRENT_TRANSACTIONS", RETRYABLE),
    (Code::TransactionCoordinatorFenced, "TRANSACTION_COORDINATOR_FENCED", UNAVAILABLE),
    (
        Code::TransactionalIdAuthorizationFailed,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        UNAVAILABLE,
    ),
    (Code::SecurityDisabled, "SECURITY_DISABLED", UNAVAILABLE),
    (Code::OperationNotAttempted, "OPERATION_NOT_ATTEMPTED", RETRYABLE),
    (Code::KafkaStorageError, "KAFKA_STORAGE_ERROR", UNAVAILABLE),
    (Code::LogDirNotFound, "LOG_DIR_NOT_FOUND", UNAVAILABLE),
    (Code::SaslAuthenticationFailed, "SASL_AUTHENTICATION_FAILED", UNAVAILABLE),
    (Code::UnknownProducerId, "UNKNOWN_PRODUCER_ID", UNAVAILABLE),
    (Code::ReassignmentInProgress, "REASSIGNMENT_IN_PROGRESS", UNAVAILABLE),
    (Code::DelegationTokenAuthDisabled, "DELEGATION_TOKEN_AUTH_DISABLED", UNAVAILABLE),
    (Code::DelegationTokenNotFound, "DELEGATION_TOKEN_NOT_FOUND", UNAVAILABLE),
    (Code::DelegationTokenOwnerMismatch, "DELEGATION_TOKEN_OWNER_MISMATCH", UNAVAILABLE),
    (Code::DelegationTokenRequestNotAllowed, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", UNAVAILABLE),
    (
        Code::DelegationTokenAuthorizationFailed,
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        UNAVAILABLE,
    ),
    (Code::DelegationTokenExpired, "DELEGATION_TOKEN_EXPIRED", UNAVAILABLE),
    (Code::InvalidPrincipalType, "INVALID_PRINCIPAL_TYPE", UNAVAILABLE),
    (Code::NonEmptyGroup, "NON_EMPTY_GROUP", RETRYABLE),
    (Code::GroupIdNotFound, "GROUP_ID_NOT_FOUND", RETRYABLE),
    (Code::FetchSessionIdNotFound, "FETCH_SESSION_ID_NOT_FOUND", RETRYABLE),
    (Code::InvalidFetchSessionEpoch, "INVALID_FETCH_SESSION_EPOCH", RETRYABLE),
    (Code::ListenerNotFound, "LISTENER_NOT_FOUND", UNAVAILABLE),
    (Code::TopicDeletionDisabled, "TOPIC_DELETION_DISABLED", RETRYABLE),
    (Code::FencedLeaderEpoch, "FENCED_LEADER_EPOCH", UNAVAILABLE),
    (Code::UnknownLeaderEpoch, "UNKNOWN_LEADER_EPOCH", UNAVAILABLE),
    (Code::UnsupportedCompressionType, "UNSUPPORTED_COMPRESSION_TYPE", UNAVAILABLE),
    (Code::StaleBrokerEpoch, "STALE_BROKER_EPOCH", UNAVAILABLE),
    (Code::OffsetNotAvailable, "OFFSET_NOT_AVAILABLE", RETRYABLE),
    (Code::MemberIdRequired, "MEMBER_ID_REQUIRED", RETRYABLE),
    (Code::PreferredLeaderNotAvailable, "PREFERRED_LEADER_NOT_AVAILABLE", UNAVAILABLE),
    (Code::GroupMaxSizeReached, "GROUP_MAX_SIZE_REACHED", RETRYABLE),
    (Code::FencedInstanceId, "FENCED_INSTANCE_ID", RETRYABLE),
    (Code::EligibleLeadersNotAvailable, "ELIGIBLE_LEADERS_NOT_AVAILABLE", UNAVAILABLE),
    (Code::ElectionNotNeeded, "ELECTION_NOT_NEEDED", RETRYABLE),
    (Code::NoReassignmentInProgress, "NO_REASSIGNMENT_IN_PROGRESS", RETRYABLE),
    (Code::GroupSubscribedToTopic, "GROUP_SUBSCRIBED_TO_TOPIC", RETRYABLE),
    (Code::InvalidRecord, "INVALID_RECORD", TERMINAL),
    (Code::UnstableOffsetCommit, "UNSTABLE_OFFSET_COMMIT", RETRYABLE),
    (Code::ThrottlingQuotaExceeded, "THROTTLING_QUOTA_EXCEEDED", UNAVAILABLE),
    (Code::ProducerFenced, "PRODUCER_FENCED", UNAVAILABLE),
    (Code::ResourceNotFound, "RESOURCE_NOT_FOUND", RETRYABLE),
    (Code::DuplicateResource, "DUPLICATE_RESOURCE", RETRYABLE),
    (Code::UnacceptableCredential, "UNACCEPTABLE_CREDENTIAL", UNAVAILABLE),
    (Code::InconsistentVoterSet, "INCONSISTENT_VOTER_SET", RETRYABLE),
    (Code::InvalidUpdateVersion, "INVALID_UPDATE_VERSION", RETRYABLE),
    (Code::FeatureUpdateFailed, "FEATURE_UPDATE_FAILED", RETRYABLE),
    (Code::PrincipalDeserializationFailure, "PRINCIPAL_DESERIALIZATION_FAILURE", UNAVAILABLE),
    (Code::UnknownTopicId, "UNKNOWN_TOPIC_ID", UNAVAILABLE),
    (Code::FencedMemberEpoch, "FENCED_MEMBER_EPOCH", RETRYABLE),
    (Code::UnreleasedInstanceId, "UNRELEASED_INSTANCE_ID", RETRYABLE),
    (Code::UnsupportedAssignor, "UNSUPPORTED_ASSIGNOR", RETRYABLE),
    (Code::StaleMemberEpoch, "STALE_MEMBER_EPOCH", RETRYABLE),
    (Code::UnknownSubscriptionId, "UNKNOWN_SUBSCRIPTION_ID", RETRYABLE),
    (Code::TelemetryTooLarge, "TELEMETRY_TOO_LARGE", RETRYABLE),
    (Code::RebootstrapRequired, "REBOOTSTRAP_REQUIRED", UNAVAILABLE),
];

/// The name without prefix, and the class.
pub(super) fn look_up(code: Code) -> Option<(&'static str, Class)> {
    TABLE.iter().find(|(known, ..)| *known == code).map(|(_, name, class)| (*name, *class))
}

/// Every name, without prefix.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(_, name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rdkafka::types::RDKafkaRespErr;

    use super::*;

    /// Marks of librdkafka's enumeration, and success: no record fails with these.
    const NO_ERRORS: [Code; 4] = [Code::Begin, Code::End, Code::NoError, Code::EndAll];

    #[test]
    fn every_code_of_librdkafka_has_a_class() {
        let all: Vec<Code> = (-1_000..1_000)
            .filter_map(|number| RDKafkaRespErr::try_from(number).ok())
            .map(Code::from)
            .filter(|code| !NO_ERRORS.contains(code))
            .collect();
        assert!(all.len() > 150, "the enumeration is read at all: {}", all.len());
        for code in &all {
            assert!(look_up(*code).is_some(), "{code:?} has no entry");
        }
        assert_eq!(all.len(), TABLE.len(), "an entry for each, and none twice");
    }

    #[test]
    fn no_two_codes_share_a_name() {
        assert_eq!(names().collect::<BTreeSet<_>>().len(), TABLE.len());
    }

    #[test]
    fn what_hits_every_row_alike_makes_no_row_fail() {
        for code in [
            Code::UnknownTopicOrPartition,
            Code::UnknownTopic,
            Code::Authentication,
            Code::SaslAuthenticationFailed,
            Code::SSL,
            Code::TopicAuthorizationFailed,
            Code::ClusterAuthorizationFailed,
            Code::AllBrokersDown,
            Code::NotEnoughReplicas,
            Code::InvalidDifferentRecord,
        ] {
            assert_eq!(look_up(code).map(|found| found.1), Some(Class::Unavailable), "{code:?}");
        }
    }
}
