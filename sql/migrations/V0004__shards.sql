-- Exactly once: the lanes of a rail with delivery = exactly_once hash to shards. A shard has one owner at
-- a time, and one batch under way; docs/exactly-once.md has the protocol.

-- Made anew after the migrations, with other arguments or other columns.
DROP FUNCTION IF EXISTS outbox.claim_outbox_batch(integer, text, integer, text[], uuid, integer);
DROP FUNCTION IF EXISTS outbox.outbox_gauges(text[]);
DROP FUNCTION IF EXISTS outbox.pick_lanes(text[], uuid, timestamptz, timestamptz, bigint, integer);
DROP FUNCTION IF EXISTS outbox.lease_lanes(bigint[], integer, integer, text, timestamptz, timestamptz);

ALTER TABLE outbox.payment_outbox_rail_policies
  ADD COLUMN shards smallint NOT NULL DEFAULT 16 CHECK (shards BETWEEN 1 AND 256);
COMMENT ON COLUMN outbox.payment_outbox_rail_policies.shards IS 'Into how many shards the lanes of a rail with delivery = exactly_once are parted.';

CREATE TABLE outbox.payment_outbox_shards (
  rail_type        text        COLLATE "C" NOT NULL,
  shard            smallint    NOT NULL CHECK (shard BETWEEN 0 AND 255),
  epoch            bigint      NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  owner            text,
  lease_expires_at timestamptz NOT NULL DEFAULT '-infinity',
  ready            boolean     NOT NULL DEFAULT false,
  batch            bigint      NOT NULL DEFAULT 0 CHECK (batch >= 0),
  offsets          jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(offsets) = 'object'),
  halted_at        timestamptz,
  halted_reason    text,
  PRIMARY KEY (rail_type, shard),
  CONSTRAINT payment_outbox_shards_ready_has_owner CHECK (NOT ready OR owner IS NOT NULL),
  CONSTRAINT payment_outbox_shards_halt_is_whole CHECK (num_nulls(halted_at, halted_reason) IN (0, 2)),
  CONSTRAINT payment_outbox_shards_halted_is_not_ready CHECK (halted_at IS NULL OR NOT ready)
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox.payment_outbox_shards IS 'The shards of each exactly-once rail: who owns it, for how long, and how far its batches have come.';
COMMENT ON COLUMN outbox.payment_outbox_shards.epoch IS 'Grows with every owner: whoever calls with an older one is not heard.';
COMMENT ON COLUMN outbox.payment_outbox_shards.ready IS 'Whether this owner has found out what became of the batch before: only then it may claim.';
COMMENT ON COLUMN outbox.payment_outbox_shards.batch IS 'The number of the last batch that was claimed. Rows and turns that carry it are under way.';
COMMENT ON COLUMN outbox.payment_outbox_shards.offsets IS 'Of each topic and partition an offset that no record of a batch under way comes before: from there on the tail is read. {topic: {partition: offset}}';

ALTER TABLE outbox.payment_outbox_lanes ADD COLUMN shard smallint NOT NULL DEFAULT -1 CHECK (shard BETWEEN -1 AND 255);
COMMENT ON COLUMN outbox.payment_outbox_lanes.shard IS 'Where its rows are batched, on a rail with delivery = exactly_once; elsewhere -1.';

ALTER TABLE outbox.payment_outbox_turns
  ADD COLUMN shard smallint NOT NULL DEFAULT -1,
  ADD COLUMN batch bigint,
  ADD COLUMN epoch bigint,
  -- A batch ends when it is completed or reconciled, never because time has passed.
  ADD CONSTRAINT payment_outbox_turns_batch_is_whole CHECK (
    num_nulls(batch, epoch) IN (0, 2) AND (batch IS NULL OR (worker_id IS NOT NULL AND shard >= 0 AND due_at = 'infinity')));
COMMENT ON COLUMN outbox.payment_outbox_turns.shard IS 'The shard of its lane, or -1.';
COMMENT ON COLUMN outbox.payment_outbox_turns.batch IS 'The batch under whose number it is leased.';
COMMENT ON COLUMN outbox.payment_outbox_turns.epoch IS 'The epoch of the owner who claimed that batch.';
DROP INDEX outbox.payment_outbox_turns_due;
CREATE INDEX payment_outbox_turns_due ON outbox.payment_outbox_turns (rail_type, shard, due_at, turn_id) WHERE worker_id IS NULL;
CREATE INDEX payment_outbox_turns_batch ON outbox.payment_outbox_turns (rail_type, shard, batch) WHERE batch IS NOT NULL;

ALTER TABLE outbox.payment_outbox_pending
  ADD COLUMN shard smallint,
  ADD COLUMN batch bigint,
  ADD CONSTRAINT payment_outbox_pending_batch_is_whole CHECK (num_nulls(shard, batch) IN (0, 2)),
  ADD CONSTRAINT payment_outbox_pending_batch_does_not_expire CHECK ((batch IS NOT NULL) = (lease_expires_at IS NOT DISTINCT FROM 'infinity'));
COMMENT ON COLUMN outbox.payment_outbox_pending.shard IS 'The shard in whose batch it is under way.';
COMMENT ON COLUMN outbox.payment_outbox_pending.batch IS 'The batch that it is under way in. Only its completion by the owner of the shard, or reconciliation, clears it.';

ALTER TABLE outbox.payment_outbox_events
  DROP CONSTRAINT payment_outbox_events_event_type_check,
  ADD CONSTRAINT payment_outbox_events_event_type_check CHECK (event_type IN (
    'LEASE_CLAIMED', 'LEASE_EXPIRED_REPAIRED', 'ATTEMPT_COMPLETED', 'TERMINAL_BLOCKED',
    'LANE_PAUSED', 'LANE_RESUMED', 'LANE_HALTED', 'LANE_HEAD_SKIPPED',
    'FAILED_REPLAYED', 'FAILED_DISMISSED', 'POLICIES_SET', 'SETTINGS_SET',
    'SHARD_TAKEN_OVER', 'SHARD_RECONCILED', 'SHARD_HALTED', 'SHARD_RESUMED'));
