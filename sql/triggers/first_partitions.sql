-- The partitions of today and the days ahead; from here on upkeep makes them.
SELECT outbox.create_partitions(p) FROM unnest(ARRAY['payment_outbox_attempts', 'payment_outbox_events']::name[]) AS p;
