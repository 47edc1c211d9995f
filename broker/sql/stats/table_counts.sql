-- queen.table_counts: the number of rows in the tables of the contract, to compare a copy with its source.
--
-- called by  broker/src/transfer/transfer.c (call "table_counts"), in the source and, after the copy, in the target
-- out        one row per table; n -1: the table does not exist
create or replace function queen.table_counts()
returns table (name text, n bigint)
language plpgsql stable
as $$
begin
    foreach name in array array[
        'queues', 'partitions', 'messages', 'partition_consumers', 'consumer_groups_metadata', 'messages_consumed',
        'dead_letter_queue', 'retention_history', 'message_traces', 'message_trace_names', 'system_state',
        'partition_lookup', 'stats', 'stats_history', 'system_metrics']
    loop
        n := -1;
        if name = 'messages' then -- the same number as through the view, without unpacking every message
            select coalesce(sum(s.count), 0) into n from queen.segments s;
        elsif to_regclass('queen.' || name) is not null then
            execute format('select count(*) from queen.%I', name) into n;
        end if;
        return next;
    end loop;
end
$$;
