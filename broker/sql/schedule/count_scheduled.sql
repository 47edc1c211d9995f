-- queen.count_scheduled: GET /api/v1/scheduled/count.
--
-- needs: scheduled_query
-- called by  broker/src/api/scheduled.c
-- in         p_args: as queen.scheduled_query
-- out        {"count":n}, counted one by one
create or replace function queen.count_scheduled(p_args jsonb)
returns json
language plpgsql stable
set enable_seqscan = on
set enable_bitmapscan = on
as $$
declare
    v_n bigint;
begin
    execute format('select count(*) from (%s) s', queen.scheduled_query(p_args, null, null, null)) into v_n;
    return json_build_object('count', v_n);
end
$$;
