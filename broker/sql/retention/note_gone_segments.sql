-- queen.note_gone_segments: remove the traces of removed messages, and count the statistics of their lanes again.
--
-- needs: notify_lanes
-- called by  a statement trigger on queen.segments (below): retention, expiry, clearing, deletion of lanes
-- locks      only the deleted traces
create or replace function queen.note_gone_segments()
returns trigger
language plpgsql
as $$
begin
    if exists (select from gone) then
        delete from queen.message_traces t
         where t.id = any (array(select k.id from gone g
                                   join queen.message_traces k
                                     on k.lane = g.lane and k.seq >= g.first_seq and k.seq < g.first_seq + g.count));
        perform queen.notify_lanes(-1, array(select distinct g.lane from gone g));
    end if;
    return null;
end
$$;

create or replace trigger note_gone_segments after delete on queen.segments
    referencing old table as gone
    for each statement execute function queen.note_gone_segments();
