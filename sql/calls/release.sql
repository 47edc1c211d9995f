select consumer, lane, queue_name from queen.release_leases($1::uuid[])
