-- Every table of the contract. Rows are changed only by the functions under sql/functions.
-- Identifiers are compared byte by byte (COLLATE "C"): faster, and the same on every machine.

CREATE TYPE outbox.outbox_attempt_state AS ENUM ('DISPATCHED', 'RETRYABLE', 'FAILED', 'ZOMBIE_REQUEUE');

CREATE TABLE outbox.schema_code (
  only_row        boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  fingerprint     text        NOT NULL,
  trestle_version text        NOT NULL,
  applied_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE outbox.schema_code IS 'Which functions, triggers, views and grants are installed, and by which version of trestle.';

CREATE TABLE outbox.payment_outbox_settings (
  only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  batch_events      boolean NOT NULL DEFAULT true,
  wake_up           boolean NOT NULL DEFAULT true,
  policies_version  integer NOT NULL DEFAULT 0,
  hot_days          integer NOT NULL DEFAULT 7 CHECK (hot_days BETWEEN 1 AND 3650),
  drop_after_days   integer CHECK (drop_after_days > hot_days),
  partition_days    integer NOT NULL DEFAULT 1 CHECK (partition_days BETWEEN 1 AND 366),
  partitions_ahead  integer NOT NULL DEFAULT 3 CHECK (partitions_ahead BETWEEN 1 AND 60)
);
COMMENT ON TABLE outbox.payment_outbox_settings IS 'One row: what an operator may switch, by set_outbox_settings, and which version of the rail policies is in force.';
INSERT INTO outbox.payment_outbox_settings DEFAULT VALUES;

CREATE TABLE outbox.payment_outbox_rail_policies (
  version   integer     NOT NULL,
  rail_type text        COLLATE "C" NOT NULL CHECK (rail_type ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  ordering  text        NOT NULL DEFAULT 'strict' CHECK (ordering IN ('strict', 'none')),
  on_failed text        NOT NULL DEFAULT 'skip' CHECK (on_failed IN ('skip', 'halt')),
  delivery  text        NOT NULL DEFAULT 'idempotent' CHECK (delivery IN ('idempotent', 'exactly_once')),
  dlq       text        NOT NULL DEFAULT 'topic' CHECK (dlq IN ('topic', 'ledger')),
  in_force  boolean     NOT NULL,
  set_by    text        NOT NULL,
  set_at    timestamptz NOT NULL,
  PRIMARY KEY (version, rail_type),
  -- A halted lane waits for its head; without order there is no head to wait for.
  CONSTRAINT payment_outbox_rail_policies_halt_needs_order CHECK (on_failed = 'skip' OR ordering = 'strict')
);
CREATE UNIQUE INDEX payment_outbox_rail_policies_in_force
  ON outbox.payment_outbox_rail_policies (rail_type) WHERE in_force;
COMMENT ON TABLE outbox.payment_outbox_rail_policies IS 'What SQL must know of each rail, by version. A rail without a row has the defaults.';

CREATE TABLE outbox.participant_outbox_sequences (
  participant_id   text   COLLATE "C" PRIMARY KEY,
  tenant_id        uuid,
  next_sequence_id bigint NOT NULL CHECK (next_sequence_id > 0)
) WITH (fillfactor = 70);
COMMENT ON TABLE outbox.participant_outbox_sequences IS 'The next number of each participant. Its row lock makes commit order equal sequence order. Only bump_participant_outbox_seq touches it.';

CREATE TABLE outbox.payment_outbox_keys (
  instruction_id  text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  outbox_id       uuid NOT NULL,
  PRIMARY KEY (instruction_id, idempotency_key)
);
COMMENT ON TABLE outbox.payment_outbox_keys IS 'Which row a key belongs to, pending or finished: idempotency as one constraint that holds at every isolation level. A key leaves when the ledger partition of its row is archived.';

-- A claim is an UPDATE that keeps the new version on the same page, so that no index is written
-- for it (HOT): half of each page stays free for that, and no lease column is in any index.
CREATE TABLE outbox.payment_outbox_pending (
  outbox_id        uuid        PRIMARY KEY,
  tenant_id        uuid,
  instruction_id   text        COLLATE "C" NOT NULL CHECK (instruction_id <> ''),
  participant_id   text        COLLATE "C" NOT NULL CHECK (participant_id <> ''),
  sequence_id      bigint      NOT NULL CHECK (sequence_id > 0),
  lane_position    bigint      NOT NULL,
  idempotency_key  text        COLLATE "C" NOT NULL CHECK (idempotency_key <> ''),
  rail_type        text        COLLATE "C" NOT NULL,
  payload          jsonb       NOT NULL CHECK (jsonb_typeof(payload) = 'object'),
  headers          jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(headers) = 'object'),
  attempt_count    integer     NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
  next_attempt_at  timestamptz NOT NULL,
  created_at       timestamptz NOT NULL,
  claimed_by       text,
  claimed_at       timestamptz,
  lease_token      uuid,
  lease_expires_at timestamptz,
  turn_id          bigint,
  solo             boolean     NOT NULL DEFAULT false,
  replay_of        uuid,
  dead_letter_of   uuid,
  CONSTRAINT payment_outbox_pending_lease_is_whole
    CHECK (num_nulls(claimed_by, claimed_at, lease_token, lease_expires_at, turn_id) IN (0, 5)),
  CONSTRAINT payment_outbox_pending_dead_letters_use_dlq
    CHECK ((rail_type = 'dlq') = (dead_letter_of IS NOT NULL)),
  CONSTRAINT payment_outbox_pending_position_is_sequence
    CHECK (CASE WHEN dead_letter_of IS NULL THEN lane_position = sequence_id ELSE lane_position < 0 END),
  UNIQUE (participant_id, lane_position)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX payment_outbox_pending_dead_letters
  ON outbox.payment_outbox_pending (dead_letter_of) WHERE dead_letter_of IS NOT NULL;
CREATE SEQUENCE outbox.payment_outbox_dead_letter_order MINVALUE -9223372036854775807 START -9223372036854775807 MAXVALUE -1;
COMMENT ON TABLE outbox.payment_outbox_pending IS 'Work that is not finished. A row leaves only when its outcome is terminal.';
COMMENT ON COLUMN outbox.payment_outbox_pending.attempt_count IS 'A cache of the highest attempt_no. The ledger is the truth; this never goes down.';
COMMENT ON COLUMN outbox.payment_outbox_pending.turn_id IS 'The leased turn of the lane under which this row was claimed.';
COMMENT ON COLUMN outbox.payment_outbox_pending.solo IS 'On a rail without order: this row has to wait, so it has a lane of its own.';
COMMENT ON COLUMN outbox.payment_outbox_pending.replay_of IS 'The FAILED row that this one replays.';
COMMENT ON COLUMN outbox.payment_outbox_pending.dead_letter_of IS 'The FAILED row that this one carries to the DLQ.';
COMMENT ON COLUMN outbox.payment_outbox_pending.lane_position IS 'Order within the lane: the sequence_id, or for a dead letter, which inherits the sequence_id of its row, a negative number that grows with the time of the failure. So (participant_id, sequence_id) is unique, dead letters counted separately.';
COMMENT ON INDEX outbox.payment_outbox_pending_dead_letters IS 'One dead letter at most for each FAILED row.';
COMMENT ON SEQUENCE outbox.payment_outbox_dead_letter_order IS 'lane_position of dead letters: they are delivered in the order in which their rows failed.';

-- A lane is a participant on a rail, and the lock that everybody who changes it takes first.
-- It exists while it has work (or is paused or halted) and is not updated by claims, so an old
-- snapshot leaves no trail of dead versions behind it.
CREATE TABLE outbox.payment_outbox_lanes (
  lane_id          bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  participant_id   text        COLLATE "C" NOT NULL,
  rail_type        text        COLLATE "C" NOT NULL CHECK (rail_type ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  solo_sequence_id bigint      NOT NULL DEFAULT 0 CHECK (solo_sequence_id >= 0),
  tenant_id        uuid,
  paused_at        timestamptz,
  paused_by        text,
  paused_reason    text,
  halted_by        uuid,
  CONSTRAINT payment_outbox_lanes_pause_is_whole CHECK (num_nulls(paused_at, paused_by, paused_reason) IN (0, 3)),
  UNIQUE (participant_id, rail_type, solo_sequence_id)
) WITH (fillfactor = 80);
CREATE INDEX payment_outbox_lanes_stopped
  ON outbox.payment_outbox_lanes (lane_id) WHERE paused_at IS NOT NULL OR halted_by IS NOT NULL;
COMMENT ON TABLE outbox.payment_outbox_lanes IS 'Lanes that have work, are paused or are halted. solo_sequence_id is 0, or the one row of a lane of its own on a rail without order.';
COMMENT ON COLUMN outbox.payment_outbox_lanes.halted_by IS 'The FAILED row for which a lane with on_failed = halt waits.';

-- When a lane is to be looked at next: when its head is due or, while it is leased, when the
-- lease expires. Inserted and deleted, never updated in place on the hot path; a new number each
-- time, so that nobody walks over dead entries of an older turn.
CREATE TABLE outbox.payment_outbox_turns (
  turn_id          bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  lane_id          bigint      NOT NULL,
  rail_type        text        COLLATE "C" NOT NULL,
  tenant_id        uuid,
  due_at           timestamptz NOT NULL,
  head_position    bigint      NOT NULL,
  last_position    bigint,
  worker_id        text,
  empty_looks      smallint    NOT NULL DEFAULT 0,
  CONSTRAINT payment_outbox_turns_lease_is_whole CHECK (num_nulls(worker_id, last_position) IN (0, 2))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX payment_outbox_turns_due ON outbox.payment_outbox_turns (rail_type, due_at, turn_id) WHERE worker_id IS NULL;
CREATE INDEX payment_outbox_turns_expiry ON outbox.payment_outbox_turns (due_at) WHERE worker_id IS NOT NULL;
CREATE INDEX payment_outbox_turns_worker ON outbox.payment_outbox_turns (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX payment_outbox_turns_lane ON outbox.payment_outbox_turns (lane_id);
COMMENT ON TABLE outbox.payment_outbox_turns IS 'One row for each lane that is neither paused nor halted: when it is next due or, with a worker, when its lease expires.';
COMMENT ON COLUMN outbox.payment_outbox_turns.head_position IS 'No row of the lane comes before this lane_position: where a scan starts.';
COMMENT ON COLUMN outbox.payment_outbox_turns.last_position IS 'The last leased row of the lane.';

CREATE TABLE outbox.payment_outbox_attempts (
  attempt_id      uuid        NOT NULL,
  outbox_id       uuid        NOT NULL,
  tenant_id       uuid,
  instruction_id  text        COLLATE "C" NOT NULL,
  participant_id  text        COLLATE "C" NOT NULL,
  sequence_id     bigint      NOT NULL,
  idempotency_key text        COLLATE "C" NOT NULL,
  rail_type       text        COLLATE "C" NOT NULL,
  payload         jsonb       NOT NULL,
  headers         jsonb       NOT NULL,
  attempt_no      integer     NOT NULL CHECK (attempt_no > 0),
  state           outbox.outbox_attempt_state NOT NULL,
  counted         boolean     NOT NULL DEFAULT true,
  claimed_at      timestamptz NOT NULL,
  completed_at    timestamptz NOT NULL,
  created_at      timestamptz NOT NULL,
  rail_reference  text,
  rail_code       text,
  error_code      text,
  error_message   text,
  latency_ms      integer     CHECK (latency_ms >= 0),
  worker_id       text        NOT NULL,
  lease_token     uuid        NOT NULL,
  replay_of       uuid,
  dead_letter_of  uuid,
  PRIMARY KEY (outbox_id, attempt_no)
) PARTITION BY RANGE (outbox_id);
CREATE UNIQUE INDEX payment_outbox_attempts_one_terminal_per_outbox
  ON outbox.payment_outbox_attempts (outbox_id) WHERE state IN ('DISPATCHED', 'FAILED');
CREATE INDEX payment_outbox_attempts_instruction ON outbox.payment_outbox_attempts (instruction_id);
COMMENT ON TABLE outbox.payment_outbox_attempts IS 'Append-only ledger of outcomes: the system of record for what happened. Partitioned by the time in outbox_id.';
COMMENT ON INDEX outbox.payment_outbox_attempts_one_terminal_per_outbox IS 'A row is delivered or failed once: the backstop that refuses a second terminal outcome whatever the code above it does.';
COMMENT ON COLUMN outbox.payment_outbox_attempts.counted IS 'Whether a RETRYABLE outcome counts toward the ceiling: false when the destination as a whole was unavailable.';

CREATE TABLE outbox.payment_outbox_events (
  event_id       uuid        PRIMARY KEY,
  event_type     text        NOT NULL CHECK (event_type IN (
    'LEASE_CLAIMED', 'LEASE_EXPIRED_REPAIRED', 'ATTEMPT_COMPLETED', 'TERMINAL_BLOCKED',
    'LANE_PAUSED', 'LANE_RESUMED', 'LANE_HALTED', 'LANE_HEAD_SKIPPED',
    'FAILED_REPLAYED', 'FAILED_DISMISSED', 'POLICIES_SET', 'SETTINGS_SET')),
  occurred_at    timestamptz NOT NULL,
  actor          text        NOT NULL,
  reason         text,
  participant_id text        COLLATE "C",
  rail_type      text        COLLATE "C",
  outbox_ids     uuid[]      NOT NULL DEFAULT '{}',
  details        jsonb
) PARTITION BY RANGE (event_id);
-- Random ids do not compress: trying to would cost more than it saves.
ALTER TABLE outbox.payment_outbox_events ALTER COLUMN outbox_ids SET STORAGE EXTERNAL;
CREATE INDEX payment_outbox_events_participant ON outbox.payment_outbox_events (participant_id) WHERE participant_id IS NOT NULL;
COMMENT ON TABLE outbox.payment_outbox_events IS 'Append-only operational log: who did what to which rows and lanes, and why. Batches are one row.';

CREATE TABLE outbox.payment_outbox_failures (
  outbox_id        uuid        PRIMARY KEY,
  tenant_id        uuid,
  participant_id   text        COLLATE "C" NOT NULL,
  rail_type        text        COLLATE "C" NOT NULL,
  sequence_id      bigint      NOT NULL,
  failed_at        timestamptz NOT NULL,
  error_code       text,
  resolution       text        CHECK (resolution IN ('REPLAYED', 'DISMISSED')),
  replay_outbox_id uuid,
  resolved_at      timestamptz,
  resolved_by      text,
  resolved_reason  text,
  CONSTRAINT payment_outbox_failures_resolution_is_whole
    CHECK (num_nulls(resolution, resolved_at, resolved_by, resolved_reason) IN (0, 4)),
  CONSTRAINT payment_outbox_failures_replay_names_its_row
    CHECK ((resolution IS NOT DISTINCT FROM 'REPLAYED') = (replay_outbox_id IS NOT NULL))
);
CREATE INDEX payment_outbox_failures_open ON outbox.payment_outbox_failures (outbox_id) WHERE resolution IS NULL;
CREATE INDEX payment_outbox_failures_participant ON outbox.payment_outbox_failures (participant_id, rail_type);
COMMENT ON TABLE outbox.payment_outbox_failures IS 'Each FAILED row and what an operator did about it: the depth of the DLQ is the rows without a resolution.';

CREATE TABLE outbox.payment_outbox_partitions (
  partition_name   name        PRIMARY KEY,
  parent_name      name        NOT NULL CHECK (parent_name IN ('payment_outbox_attempts', 'payment_outbox_events')),
  from_id          uuid        NOT NULL,
  to_id            uuid        NOT NULL,
  ends_at          timestamptz NOT NULL,
  closing_xid      xid8,
  archived_at      timestamptz,
  keys_cleared_to  uuid,
  keys_cleared_at  timestamptz,
  UNIQUE (parent_name, from_id),
  CHECK (from_id < to_id)
);
COMMENT ON TABLE outbox.payment_outbox_partitions IS 'The partitions of ledger and events, hot and archived, and how far their retention has come.';
COMMENT ON COLUMN outbox.payment_outbox_partitions.closing_xid IS 'A transaction number taken after the end of the partition: when every older transaction is over, no row of its time can still appear.';

CREATE TABLE outbox.contact_identities (
  tenant_id  uuid,
  contact_id text        COLLATE "C" NOT NULL CHECK (contact_id <> ''),
  type       text        NOT NULL CHECK (type IN ('external_id', 'email', 'phone', 'name')),
  value      text        NOT NULL CHECK (value <> ''),
  created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX uniq_identity_external ON outbox.contact_identities
  (COALESCE(tenant_id, '00000000-0000-0000-0000-000000000000'::uuid), (tenant_id IS NULL), value) WHERE type = 'external_id';
CREATE UNIQUE INDEX uniq_identity_email_lower ON outbox.contact_identities
  (COALESCE(tenant_id, '00000000-0000-0000-0000-000000000000'::uuid), (tenant_id IS NULL), lower(value)) WHERE type = 'email';
CREATE UNIQUE INDEX contact_identities_once ON outbox.contact_identities
  (contact_id, type, value, COALESCE(tenant_id, '00000000-0000-0000-0000-000000000000'::uuid), (tenant_id IS NULL));
COMMENT ON TABLE outbox.contact_identities IS 'Who a participant is: contact_id is the participant.';

-- A row whose partition is missing would fail its completion after it was sent, for ever: the
-- default partition takes it, and upkeep raises the alarm.
CREATE TABLE outbox.payment_outbox_attempts_default PARTITION OF outbox.payment_outbox_attempts DEFAULT;
CREATE TABLE outbox.payment_outbox_events_default PARTITION OF outbox.payment_outbox_events DEFAULT;
COMMENT ON TABLE outbox.payment_outbox_attempts_default IS 'Attempts whose dated partition is missing. Not empty: an alarm.';
COMMENT ON TABLE outbox.payment_outbox_events_default IS 'Events whose dated partition is missing. Not empty: an alarm.';
COMMENT ON TABLE outbox.schema_history IS 'Which migrations were applied, and when.';
