-- Made anew after the migrations, with another result.
DROP FUNCTION IF EXISTS outbox.judge_outcomes(bigint[], text, timestamptz, uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]);
DROP FUNCTION IF EXISTS outbox.lease_lanes(bigint[], integer, integer, text, timestamptz, timestamptz, bigint, bigint);

-- PostgreSQL reads every CHECK of a table anew for each statement that writes to it, and a list of sixteen words is long:
-- it was half of what an event costs. The list is a type now, and the rule asks that. The column stays text, because
-- there are many events, and to write all of them anew would take as long; to read them all would too, and they were
-- checked by the rule before.
CREATE TYPE outbox.outbox_event_type AS ENUM (
  'LEASE_CLAIMED', 'LEASE_EXPIRED_REPAIRED', 'ATTEMPT_COMPLETED', 'TERMINAL_BLOCKED',
  'LANE_PAUSED', 'LANE_RESUMED', 'LANE_HALTED', 'LANE_HEAD_SKIPPED',
  'FAILED_REPLAYED', 'FAILED_DISMISSED', 'POLICIES_SET', 'SETTINGS_SET',
  'SHARD_TAKEN_OVER', 'SHARD_RECONCILED', 'SHARD_HALTED', 'SHARD_RESUMED');
COMMENT ON TYPE outbox.outbox_event_type IS 'What payment_outbox_events tells of.';
ALTER TABLE outbox.payment_outbox_events
  DROP CONSTRAINT payment_outbox_events_event_type_check,
  ADD CONSTRAINT payment_outbox_events_event_type_check CHECK (event_type::outbox.outbox_event_type IS NOT NULL) NOT VALID;

-- What the functions of claims and completions hand to each other.
CREATE TYPE outbox.judged_outcome AS (
  outbox_id uuid, n bigint, verdict text, tuple tid, attempt_no integer, state outbox.outbox_attempt_state, counted boolean,
  unordered boolean, rail_reference text, rail_code text, error_code text, error_message text, latency_ms integer, retry_delay interval);
COMMENT ON TYPE outbox.judged_outcome IS 'What becomes of a leased row: record, give back, too early, blocked (the ledger has its terminal outcome already), or nothing.';
CREATE TYPE outbox.ended_turn AS (
  turn_id bigint, lane_id bigint, rail_type text, tenant_id uuid, shard smallint, head_position bigint, empty_looks smallint,
  lane_position bigint, next_attempt_at timestamptz, runs boolean);
COMMENT ON TYPE outbox.ended_turn IS 'A turn in which nothing is leased any more, and the next row of its lane, if there is one.';
