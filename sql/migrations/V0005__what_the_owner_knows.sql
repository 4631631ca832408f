-- Made anew after the migrations, with other arguments or other columns: the owner of a shard says which
-- batch it knows of, and which stand its evidence is about.
DROP FUNCTION IF EXISTS outbox.claim_outbox_batch(integer, text, integer, text[], uuid, integer, smallint[], bigint[], jsonb);
DROP FUNCTION IF EXISTS outbox.claimable_shards(text, text[], smallint[], bigint[], timestamptz);
DROP FUNCTION IF EXISTS outbox.lease_outbox_shards(text, text, integer);
DROP FUNCTION IF EXISTS outbox.reconcile_outbox_shard(text, text, smallint, bigint, uuid[], bigint[], text[], bigint[], integer[], bigint, jsonb);
DROP FUNCTION IF EXISTS outbox.outbox_shard_stand(text, text, smallint, bigint);

ALTER TABLE outbox.payment_outbox_shards ADD COLUMN sender text;
COMMENT ON COLUMN outbox.payment_outbox_shards.sender IS 'Under which transactional_id_prefix and in which cluster the last owner delivered: under another name, or elsewhere, nobody can tell what became of its batch.';
