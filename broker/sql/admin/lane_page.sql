-- queen.lane_page: a page of the partitions of a queue, in the order of their names.
--
-- called by  operations on all partitions of a queue, which run in steps
-- in         p_after: name of the last partition of the previous page; null: the first page
-- out        their numbers and names, in that order; more: there may be further partitions
create or replace function queen.lane_page(
    p_queue uuid, p_after text, p_limit int, out lanes bigint[], out names text[], out more boolean)
language plpgsql stable
as $$
begin
    if p_after is null then
        select array_agg(l.num order by l.name), array_agg(l.name::text order by l.name) into lanes, names
          from (select k.num, k.name from queen.lanes k
                 where k.queue_id = p_queue order by k.name limit p_limit) l;
    else
        select array_agg(l.num order by l.name), array_agg(l.name::text order by l.name) into lanes, names
          from (select k.num, k.name from queen.lanes k
                 where k.queue_id = p_queue and k.name > p_after order by k.name limit p_limit) l;
    end if;
    lanes := coalesce(lanes, '{}');
    names := coalesce(names, '{}');
    more := cardinality(lanes) >= p_limit;
end
$$;
