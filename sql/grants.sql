-- Exactly who may do what. Nothing is executable by PUBLIC, no role but the owner writes a table.
REVOKE ALL ON SCHEMA outbox, outbox_archive FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM PUBLIC, symphony_ingest, symphony_executor, symphony_operator, symphony_readonly, symphony_auditor;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA outbox FROM PUBLIC, symphony_ingest, symphony_executor, symphony_operator, symphony_readonly, symphony_auditor;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA outbox FROM PUBLIC, symphony_ingest, symphony_executor, symphony_operator, symphony_readonly, symphony_auditor;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON TYPE outbox.outbox_attempt_state, outbox.outbox_event_type, outbox.judged_outcome, outbox.ended_turn FROM PUBLIC;

GRANT USAGE ON SCHEMA outbox TO symphony_ingest, symphony_executor, symphony_operator, symphony_readonly, symphony_auditor;
GRANT USAGE ON SCHEMA outbox_archive TO symphony_operator, symphony_readonly, symphony_auditor;
GRANT USAGE ON TYPE outbox.outbox_attempt_state TO symphony_executor, symphony_operator, symphony_readonly, symphony_auditor;

GRANT EXECUTE ON FUNCTION
  outbox.enqueue_payment_outbox(text, text, text, text, jsonb, jsonb, uuid, timestamptz),
  outbox.enqueue_payment_outbox_batch(jsonb, boolean),
  outbox.put_contact_identity(text, text, text, uuid)
TO symphony_ingest;

GRANT EXECUTE ON FUNCTION
  outbox.claim_outbox_batch(integer, text, integer, text[], uuid, integer, smallint[], bigint[], jsonb, bigint[]),
  outbox.complete_outbox_attempt(uuid, uuid, text, outbox.outbox_attempt_state, text, text, text, text, integer, integer, boolean),
  outbox.complete_outbox_batch(text, uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]),
  outbox.renew_outbox_leases(text, uuid[], uuid[], integer),
  outbox.release_outbox_leases(text, uuid[], uuid[], integer),
  outbox.repair_expired_leases(integer, text),
  outbox.lease_outbox_shards(text, text, integer),
  outbox.outbox_shard_stand(text, text, smallint, bigint),
  outbox.outbox_shards_left(text, text),
  outbox.note_shard_offsets(text, text, smallint, bigint, jsonb),
  outbox.renew_shard_offsets(text, text, smallint, bigint, bigint, jsonb),
  outbox.reconcile_outbox_shard(text, text, smallint, bigint, bigint, jsonb, uuid[], bigint[], text[], bigint[], integer[], bigint, jsonb, text),
  outbox.release_outbox_shard(text, text, smallint, bigint),
  outbox.halt_outbox_shard(text, text, smallint, bigint, text),
  outbox.run_outbox_upkeep(),
  outbox.sample_outbox_gauges(),
  outbox.waiting_rails(text[], uuid),
  outbox.wake_up_key(),
  outbox.take_wake_up_key(),
  outbox.check_rail_policies(jsonb),
  outbox.note_worker(text, text[], uuid),
  outbox.outbox_schema_version(),
  outbox.forget_worker(text)
TO symphony_executor;
-- What a worker's gauges need: two views, which read with their owner's rights.
GRANT SELECT ON outbox.supervisor_outbox_status, outbox.outbox_operational_status TO symphony_executor;

GRANT EXECUTE ON FUNCTION
  outbox.pause_outbox_lane(text, text, text, text),
  outbox.resume_outbox_lane(text, text, text, text),
  outbox.skip_outbox_lane_head(text, text, text, text),
  outbox.preview_replay(uuid[]),
  outbox.replay_failed_outbox(uuid, text, text),
  outbox.dismiss_failed_outbox(uuid, text, text),
  outbox.resume_outbox_shard(text, smallint, text, text),
  outbox.set_rail_policies(jsonb, text, text),
  outbox.set_outbox_settings(jsonb, text, text)
TO symphony_operator;
GRANT SELECT ON ALL TABLES IN SCHEMA outbox TO symphony_operator;
-- What is shown to whoever watches; none of it has a payload.
GRANT EXECUTE ON FUNCTION
  outbox.outbox_gauges(),
  outbox.outbox_schema_version(),
  outbox.lane_status(text, text, boolean, integer),
  outbox.trace_outbox(text, text, integer)
TO symphony_operator, symphony_readonly, symphony_auditor;
GRANT SELECT ON ALL TABLES IN SCHEMA outbox_archive TO symphony_operator, symphony_readonly, symphony_auditor;

GRANT SELECT ON outbox.payment_outbox_pending, outbox.payment_outbox_attempts, outbox.payment_outbox_events,
  outbox.supervisor_outbox_status, outbox.outbox_operational_status, outbox.outbox_failure_status, outbox.outbox_worker_status
TO symphony_readonly, symphony_auditor;

-- Last, after any blanket grant: only the operator reads the numbers.
REVOKE ALL ON outbox.participant_outbox_sequences FROM PUBLIC, symphony_ingest, symphony_executor, symphony_readonly, symphony_auditor;
