-- queen.forget_deleted: continue the deletion of queues and lanes, one bounded step.
--
-- needs: remove_lanes, forget_contents, step_lanes, step_rows
-- called by  broker/src/broker/chores.c (call "forget_deleted"); brokers may call it at the same time
-- out        true if something was removed: call again at once
-- locks      rows of deleted_queues and deleted_lanes, lanes, consumers, each skipping those of other sessions: never waits
create or replace function queen.forget_deleted()
returns boolean
language plpgsql
as $$
declare
    v_queues uuid[];
    v_lanes  bigint[];
    v_ids    uuid[];
    r        record;
begin
    v_queues := array(select d.id from queen.deleted_queues d order by d.deleted_at, d.id limit 100 for update skip locked);
    if v_queues <> '{}' and queen.remove_lanes(v_queues, queen.step_lanes(), false) > 0 then
        return true;
    end if;
    select array_agg(k.lane), array_agg(k.id) into v_lanes, v_ids
      from (select d.lane, d.id from queen.deleted_lanes d order by d.lane limit queen.step_lanes() for update skip locked) k;
    if v_lanes is null then
        return false;
    end if;
    select * into r from queen.forget_contents(v_lanes, v_ids, queen.step_rows());
    delete from queen.deleted_lanes d where d.lane = any (r.gone);
    return r.removed > 0 or r.gone <> '{}';
end
$$;
