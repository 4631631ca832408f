CREATE OR REPLACE FUNCTION outbox.set_outbox_settings(p_settings jsonb, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_key text;
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  IF p_settings IS NULL OR jsonb_typeof(p_settings) <> 'object' THEN
    RAISE EXCEPTION 'p_settings must be a JSON object, like {"hot_days": 14}' USING ERRCODE = 'P7119';
  END IF;
  FOR v_key IN SELECT k FROM jsonb_object_keys(p_settings) AS k LOOP
    IF v_key NOT IN ('batch_events', 'wake_up', 'hot_days', 'drop_after_days', 'partition_days', 'partitions_ahead') THEN
      RAISE EXCEPTION 'p_settings: % is not a setting', to_json(v_key)
        USING ERRCODE = 'P7119', HINT = 'There are batch_events, wake_up, hot_days, drop_after_days, partition_days and partitions_ahead.';
    END IF;
    IF jsonb_typeof(p_settings -> v_key) <> (CASE WHEN v_key IN ('batch_events', 'wake_up') THEN 'boolean' ELSE 'number' END)
       AND NOT (v_key = 'drop_after_days' AND p_settings -> v_key = 'null') THEN
      RAISE EXCEPTION 'p_settings.%: % is not of its type', v_key, p_settings -> v_key USING ERRCODE = 'P7119';
    END IF;
  END LOOP;
  UPDATE outbox.payment_outbox_settings AS s SET
    batch_events     = COALESCE((p_settings ->> 'batch_events')::boolean, s.batch_events),
    wake_up          = COALESCE((p_settings ->> 'wake_up')::boolean, s.wake_up),
    hot_days         = COALESCE((p_settings ->> 'hot_days')::integer, s.hot_days),
    drop_after_days  = CASE WHEN p_settings ? 'drop_after_days' THEN (p_settings ->> 'drop_after_days')::integer ELSE s.drop_after_days END,
    partition_days   = COALESCE((p_settings ->> 'partition_days')::integer, s.partition_days),
    partitions_ahead = COALESCE((p_settings ->> 'partitions_ahead')::integer, s.partitions_ahead);
  PERFORM outbox.log_event('SETTINGS_SET', p_actor, p_reason, NULL, NULL, '{}', p_settings);
EXCEPTION WHEN check_violation OR numeric_value_out_of_range OR invalid_text_representation THEN
  RAISE EXCEPTION 'p_settings % is out of bounds: hot_days 1 to 3650, drop_after_days more than hot_days or null, partition_days 1 to 366, partitions_ahead 1 to 60', p_settings
    USING ERRCODE = 'P7119';
END
$$;
COMMENT ON FUNCTION outbox.set_outbox_settings(jsonb, text, text) IS 'Changes what an operator may switch: batch_events, wake_up, hot_days, drop_after_days, partition_days, partitions_ahead.';
