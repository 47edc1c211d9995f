-- queen.forget_contents: remove everything that belongs to deleted lanes, one bounded step.
--
-- called by  queen.forget_lanes, queen.forget_deleted
-- in         lanes and their ids; p_limit: maximum number of rows
-- out        removed: number of rows; gone: the lanes of which nothing is left
-- locks      consumers and retry lanes, skipping those of other sessions: never waits
--
-- An acknowledgement in progress has locked its consumer and may still add rows, even a retry lane. So the rest of a lane is removed only
-- after all of its consumers: no session adds rows to a lane that has neither its own row nor a consumer. Other lanes do not wait for it.
-- Rows are found by ctid, so that no statement compares every row with the whole list of lanes.
create or replace function queen.forget_contents(
    p_lanes bigint[], p_ids uuid[], p_limit int, out removed int, out gone bigint[])
language plpgsql
as $$
declare
    v_consumers bigint[];
    v_used      bigint[]; -- lanes that still have a consumer or a retry lane
    v_lanes     bigint[] := p_lanes; -- the others
    v_ids       uuid[] := p_ids;
    v_n         int;
    v_table     text;
begin
    gone := '{}';
    v_consumers := array(select c.num from queen.consumers c where c.lane = any (p_lanes) limit p_limit for update skip locked);
    delete from queen.consumers c where c.num = any (v_consumers);
    delete from queen.consumer_states s where s.consumer = any (v_consumers);
    removed := cardinality(v_consumers);
    v_used := array(select distinct c.lane from queen.consumers c where c.lane = any (p_lanes));
    if v_used <> '{}' then
        v_lanes := array(select unnest(p_lanes) except select unnest(v_used));
    end if;
    delete from queen.lanes r
     where r.num = any (array(select k.num from queen.lanes k where k.origin = any (v_lanes) limit p_limit for update skip locked));
    get diagnostics v_n = row_count;
    removed := removed + v_n;
    v_used := v_used || array(select distinct r.origin from queen.lanes r where r.origin = any (v_lanes));
    if v_used <> '{}' then
        select coalesce(array_agg(u.lane), '{}'), coalesce(array_agg(u.id), '{}') into v_lanes, v_ids
          from unnest(p_lanes, p_ids) u(lane, id) where u.lane <> all (v_used);
    end if;

    -- In a partitioned table the ctid does not identify a row.
    delete from queen.scheduled w
     where w.num = any (array(select s.num from queen.scheduled s where s.lane = any (v_lanes) limit greatest(p_limit - removed, 0)));
    get diagnostics v_n = row_count;
    removed := removed + v_n;
    foreach v_table in array array['segments', 'message_keys', 'skips', 'dead_letter_queue', 'lane_due', 'message_traces',
                                   'correlations', 'attempts', 'expired_leases'] loop
        exit when removed >= p_limit;
        execute format('delete from queen.%1$I t
                         where t.ctid = any (array(select k.ctid from queen.%1$I k where k.lane = any ($1) limit $2))', v_table)
            using v_lanes, p_limit - removed;
        get diagnostics v_n = row_count;
        removed := removed + v_n;
    end loop;
    if removed < p_limit then
        delete from queen.retention_history h
         where h.ctid = any (array(select k.ctid from queen.retention_history k where k.partition_id = any (v_ids)
                                    limit p_limit - removed));
        get diagnostics v_n = row_count;
        removed := removed + v_n;
    end if;
    if removed < p_limit then
        gone := v_lanes;
    end if;
end
$$;
