-- Made anew after the migrations, with other columns.
DROP VIEW IF EXISTS outbox.outbox_worker_status;

-- Every worker updates its row every few seconds: on the same page, without touching an index.
CREATE TABLE outbox.payment_outbox_workers (
  worker_id  text        PRIMARY KEY,
  rail_types text[]      COLLATE "C" NOT NULL CHECK (cardinality(rail_types) > 0),
  tenant_id  uuid,
  started_at timestamptz NOT NULL,
  seen_at    timestamptz NOT NULL,
  live_until timestamptz NOT NULL,
  CONSTRAINT payment_outbox_workers_life_is_in_order CHECK (started_at <= seen_at AND seen_at < live_until)
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox.payment_outbox_workers IS 'Workers that have said lately that they are there, with or without a lease.';
COMMENT ON COLUMN outbox.payment_outbox_workers.tenant_id IS 'The only tenant whose rows it delivers; everybody''s when it is null.';
COMMENT ON COLUMN outbox.payment_outbox_workers.live_until IS 'A worker that has not been seen by then counts as gone.';

-- Another result, and no argument any more.
DROP FUNCTION IF EXISTS outbox.outbox_gauges(text[]);

-- What the gauges show is sampled by one worker and read by all.
CREATE TABLE outbox.payment_outbox_gauges (
  only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  sample   jsonb,
  taken_at timestamptz NOT NULL DEFAULT '-infinity',
  next_at  timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 20);
COMMENT ON TABLE outbox.payment_outbox_gauges IS 'One row: the last sample of the gauges that all workers show, and when the next one may be taken.';
INSERT INTO outbox.payment_outbox_gauges DEFAULT VALUES;

-- Which transaction number was reached when: the age of a snapshot that no statistics show to an ordinary role.
CREATE TABLE outbox.payment_outbox_horizon (
  xid        bigint      PRIMARY KEY,
  reached_at timestamptz NOT NULL
);
COMMENT ON TABLE outbox.payment_outbox_horizon IS 'Transaction numbers of the samples of the last day, with their times: how old the oldest snapshot is.';

-- The oldest dead letter that waits is found without reading the backlog.
CREATE INDEX payment_outbox_pending_dead_letters_waiting
  ON outbox.payment_outbox_pending (outbox_id) WHERE dead_letter_of IS NOT NULL;
