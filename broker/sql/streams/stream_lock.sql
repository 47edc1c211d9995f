-- queen.stream_lock: serialize the cycles of one query on one partition, and exclude them while the query is reset.
--
-- called by  queen.stream_cycle (a partition), queen.stream_register (p_partition null: all of the query)
-- locks      advisory, until the end of the transaction, before any row: (737002, query) shared, or exclusive for the whole query;
--            then (737003, query and partition). A collision of two hashes only makes them wait for each other
create or replace function queen.stream_lock(p_query uuid, p_partition uuid)
returns void
language plpgsql
as $$
begin
    if p_partition is null then
        perform pg_advisory_xact_lock(737002, hashtext(p_query::text));
    else
        perform pg_advisory_xact_lock_shared(737002, hashtext(p_query::text));
        perform pg_advisory_xact_lock(737003, hashtext(p_query::text || p_partition::text));
    end if;
end
$$;
