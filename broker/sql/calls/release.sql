-- returns: consumer int8, lane int8?, queue_name text
select consumer, lane, queue_name from queen.release_leases($1::uuid[])
