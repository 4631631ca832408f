-- Made anew after the migrations, with another result: when the lease of another worker's shard ends, and whether
-- there is more to claim.
DROP FUNCTION IF EXISTS outbox.lease_outbox_shards(text, text, integer);
DROP FUNCTION IF EXISTS outbox.complete_outbox_batch(text, uuid[], uuid[], outbox.outbox_attempt_state[], text[], text[], text[], text[], integer[], integer[], boolean[]);
DROP FUNCTION IF EXISTS outbox.settle_lanes(bigint[]);
