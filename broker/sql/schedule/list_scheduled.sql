-- queen.list_scheduled: GET /api/v1/scheduled.
--
-- needs: scheduled_query, scheduled_json, strict_int
-- called by  broker/src/api/admin/scheduled.c
-- in         p_args: as queen.scheduled_query; limit (100, at most 1000); cursor: "next" of the previous page
-- out        {"scheduled":[...],"next":...}, ordered by due time, without payloads; next is null on the last page
-- raises     QN001 for an invalid cursor, and as queen.scheduled_query
create or replace function queen.list_scheduled(p_args jsonb)
returns json
language plpgsql stable
set enable_seqscan = off
set enable_hashjoin = on
as $$
declare
    v_limit  bigint := least(greatest(queen.strict_int(p_args, 'limit', 100), 1), 1000);
    v_cursor text[] := regexp_match(p_args ->> 'cursor', '^(\d{1,18})-(\d{1,18})$');
    v_list   json;
    v_next   text;
begin
    if p_args ->> 'cursor' is not null and v_cursor is null then
        raise exception 'cursor must be "next" of another page' using errcode = 'QN001';
    end if;
    execute format('select json_agg(queen.scheduled_json(s) order by s.due_at, s.num),
                           (array_agg((extract(epoch from s.due_at) * 1000000)::bigint || ''-'' || s.num
                                      order by s.due_at desc, s.num desc) filter (where s.of = %s))[1]
                      from (select s::queen.scheduled as s, s.due_at, s.num, count(*) over () as of from (%s) s) s(s, due_at, num, of)',
                   v_limit,
                   queen.scheduled_query(p_args, v_limit,
                                         'epoch'::timestamptz + v_cursor[1]::bigint * interval '1 microsecond',
                                         v_cursor[2]::bigint))
       into v_list, v_next;
    return json_build_object('scheduled', coalesce(v_list, '[]'), 'next', v_next);
end
$$;
