-- queen.last_receipt: the receipt of the last cycle of a query on a partition, or no row.
--
-- called by  queen.stream_cycle, under its lock of (query, partition)
-- in         p_slot: the slot that is written now. Only it and the one before are read, so that the third can be
--            emptied at any time
-- out        the newest row younger than p_since; hash null: it is void
create or replace function queen.last_receipt(p_slot int, p_query uuid, p_partition uuid, p_since timestamptz)
returns setof queen_streams.receipts
language plpgsql stable rows 1
as $$
begin
    if p_slot = 0 then
        return query select * from (
            (select * from queen_streams.receipts_0 r
              where r.query_id = p_query and r.partition_id = p_partition and r.at > p_since order by r.at desc limit 1)
            union all
            (select * from queen_streams.receipts_2 r
              where r.query_id = p_query and r.partition_id = p_partition and r.at > p_since order by r.at desc limit 1)
            ) s order by s.at desc limit 1;
    elsif p_slot = 1 then
        return query select * from (
            (select * from queen_streams.receipts_1 r
              where r.query_id = p_query and r.partition_id = p_partition and r.at > p_since order by r.at desc limit 1)
            union all
            (select * from queen_streams.receipts_0 r
              where r.query_id = p_query and r.partition_id = p_partition and r.at > p_since order by r.at desc limit 1)
            ) s order by s.at desc limit 1;
    else
        return query select * from (
            (select * from queen_streams.receipts_2 r
              where r.query_id = p_query and r.partition_id = p_partition and r.at > p_since order by r.at desc limit 1)
            union all
            (select * from queen_streams.receipts_1 r
              where r.query_id = p_query and r.partition_id = p_partition and r.at > p_since order by r.at desc limit 1)
            ) s order by s.at desc limit 1;
    end if;
end
$$;
