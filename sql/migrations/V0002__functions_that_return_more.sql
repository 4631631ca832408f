-- These return more columns than before. PostgreSQL replaces no function whose result is another; the new
-- ones are made after the migrations, in the same transaction.
DROP FUNCTION IF EXISTS outbox.claim_outbox_batch(integer, text, integer, text[], uuid, integer);
DROP FUNCTION IF EXISTS outbox.release_outbox_leases(text, uuid[], uuid[], integer);
DROP FUNCTION IF EXISTS outbox.lock_leased_lanes(text, uuid[]);
