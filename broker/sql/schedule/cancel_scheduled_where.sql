-- queen.cancel_scheduled_where: DELETE /api/v1/scheduled, one bounded step.
--
-- needs: scheduled_query, cancel_scheduled, strict_bool
-- called by  broker/src/api/admin/scheduled.c
-- in         p_args: as queen.scheduled_query; all=true: all scheduled messages; done: number cancelled by the previous steps
-- out        status 0: call again with the answer; else {"cancelled":n}
-- raises     QN001 without a filter and without all
create or replace function queen.cancel_scheduled_where(p_args jsonb)
returns table (status int, answer json)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = on
as $$
declare
    c_step constant bigint := 20000; -- so that queen.fire_scheduled never waits for long
    v_done bigint := coalesce((p_args ->> 'done')::bigint, 0);
    v_some bigint;
    v_slice int[];
    v_num bigint[];
    v_due timestamptz[];
begin
    if not p_args ?| array['queue', 'partition', 'from', 'to', 'correlationId', 'transactionIdPrefix', 'kind']
       and not queen.strict_bool(p_args, 'all', false) then
        raise exception 'a filter or all=true must be given' using errcode = 'QN001';
    end if;
    -- In no order, so that a step reads only the rows that it cancels.
    execute format('select array_agg(s.slice), array_agg(s.num), array_agg(s.due_at) from (select k.slice, k.num, k.due_at from (%s) k limit %s) s',
                   queen.scheduled_query(p_args, null, null, null), c_step)
       into v_slice, v_num, v_due;
    v_some := queen.cancel_scheduled(v_slice, v_due, v_num);
    v_done := v_done + v_some;
    if v_some > 0 and cardinality(v_num) = c_step then
        return query select 0, (p_args || jsonb_build_object('done', v_done))::json;
    else
        return query select 200, json_build_object('cancelled', v_done);
    end if;
end
$$;
