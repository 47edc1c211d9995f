select partitions from queen.queue_partitions($1::text[])
