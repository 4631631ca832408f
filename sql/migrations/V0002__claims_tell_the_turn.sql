-- claim_outbox_batch returns one column more. PostgreSQL replaces no function whose result is another;
-- the new one is made after the migrations, in the same transaction.
DROP FUNCTION IF EXISTS outbox.claim_outbox_batch(integer, text, integer, text[], uuid, integer);
