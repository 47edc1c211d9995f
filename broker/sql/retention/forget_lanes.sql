-- queen.forget_lanes: remove everything that belongs to deleted lanes, whatever statement deleted them.
--
-- needs: forget_contents, step_rows, notify_lanes
-- called by  a statement trigger on queen.lanes (below)
-- effects    removes up to queen.step_rows() rows.  queen.forget_deleted removes the rest
-- locks      as queen.forget_contents. The lanes are already deleted, so pushes in progress have ended and none can follow
create or replace function queen.forget_lanes()
returns trigger
language plpgsql
as $$
declare
    v_lanes bigint[];
    v_ids   uuid[];
    v_gone  bigint[];
begin
    select array_agg(g.num), array_agg(g.id) into v_lanes, v_ids from gone g;
    if v_lanes is null then
        return null;
    end if;
    perform queen.notify_lanes(-1, v_lanes);
    select c.gone into v_gone from queen.forget_contents(v_lanes, v_ids, queen.step_rows()) c;
    if cardinality(v_gone) < cardinality(v_lanes) then
        insert into queen.deleted_lanes (lane, id)
        select u.lane, u.id from unnest(v_lanes, v_ids) u(lane, id) where u.lane <> all (v_gone);
    end if;
    return null;
end
$$;

create or replace trigger forget_lanes after delete on queen.lanes
    referencing old table as gone
    for each statement execute function queen.forget_lanes();
