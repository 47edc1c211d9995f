-- returns: partitions int4
select partitions from queen.queue_partitions($1::text[])
