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
