-- queen.list_audit: GET /api/v1/audit.
--
-- needs: strict_int, param_time, iso_ms
-- called by  broker/src/api/admin/audit.c
-- in         p_args: subject, address, operation, target, result (ok, failed, denied), from, to; limit (100, at most 1000); before: an id
-- out        {"records":[...],"next":id}, newest first; next: pass it as "before" for the next page; null: there is none
-- raises     QN001 if a parameter is invalid
create or replace function queen.list_audit(p_args jsonb)
returns json
language plpgsql stable
as $$
declare
    v_limit  bigint := least(greatest(queen.strict_int(p_args, 'limit', 100), 1), 1000);
    v_before bigint := queen.strict_int(p_args, 'before', 9223372036854775807);
    v_from   timestamptz := queen.param_time(p_args, 'from', '-infinity');
    v_to     timestamptz := queen.param_time(p_args, 'to', 'infinity');
    v_result text := p_args ->> 'result';
begin
    if v_result not in ('ok', 'failed', 'denied') then
        raise exception using errcode = 'QN001', message = 'result must be ok, failed or denied';
    end if;
    return (
        select json_build_object('records', coalesce(json_agg(json_build_object(
                   'id', a.id, 'at', queen.iso_ms(a.at), 'subject', a.subject, 'address', a.address, 'operation', a.operation, 'method', a.method, 'path', a.path,
                   'target', a.target, 'status', a.status, 'result', a.result, 'count', a.count, 'detail', a.detail, 'server', a.server) order by a.id desc)
                   filter (where a.nth <= v_limit), '[]'),
               'next', case when count(*) > v_limit then min(a.id) filter (where a.nth <= v_limit) end)
          from (select f.*, row_number() over (order by f.id desc) as nth
                  from (select a.*, case when a.status in (401, 403) then 'denied' when a.status >= 400 then 'failed' else 'ok' end as result
                          from queen.audit a) f
                 where f.id < v_before and f.at >= v_from and f.at < v_to
                   and (p_args ->> 'subject' is null or f.subject = p_args ->> 'subject')
                   and (p_args ->> 'address' is null or f.address = p_args ->> 'address')
                   and (p_args ->> 'operation' is null or f.operation = p_args ->> 'operation')
                   and (p_args ->> 'target' is null or f.target = p_args ->> 'target')
                   and (v_result is null or f.result = v_result)
                 order by f.id desc
                 limit v_limit + 1) a
    );
end
$$;
