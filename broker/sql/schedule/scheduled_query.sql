-- queen.scheduled_query: the text of a query for scheduled messages.
--
-- needs: waiting_lanes, param_time
-- called by  queen.list_scheduled, queen.count_scheduled, queen.cancel_scheduled_where
-- in         p_args: queue, partition (of it), from, to (of the time, from included), correlationId, transactionIdPrefix,
--            kind (push, retry); p_limit null: all, in no order; p_after_*: after this one (null: from the start)
-- out        select of rows of queen.scheduled, in the order (due_at, num)
-- raises     QN001 for an invalid time or kind, or a partition without its queue
--
-- The text contains values, not parameters, because they decide which index is used. Lanes are read one by
-- one, each through its index, so that the cost of a page does not depend on the messages of other lanes.
create or replace function queen.scheduled_query(p_args jsonb, p_limit bigint, p_after_at timestamptz, p_after_num bigint)
returns text
language plpgsql stable
as $$
declare
    v_from  timestamptz := queen.param_time(p_args, 'from', null);
    v_to    timestamptz := queen.param_time(p_args, 'to', null);
    v_kind  text := p_args ->> 'kind';
    v_where text := '';
    v_order text := case when p_limit is null then '' else format(' order by s.due_at, s.num limit %s', p_limit) end;
begin
    if v_kind not in ('push', 'retry') then
        raise exception 'kind must be push or retry' using errcode = 'QN001';
    elsif p_args ->> 'partition' is not null and p_args ->> 'queue' is null then
        raise exception 'queue must be given with partition' using errcode = 'QN001';
    end if;
    v_where := concat(
        case when v_from is not null then format(' and s.due_at >= %L', v_from) end,
        case when v_to is not null then format(' and s.due_at < %L', v_to) end,
        case when p_after_at is not null
             then format(' and s.due_at >= %1$L and (s.due_at, s.num) > (%1$L, %2$s)', p_after_at, p_after_num) end,
        case when v_kind is not null then format(' and s.kind = %L', left(v_kind, 1)) end,
        case when p_args ->> 'correlationId' is not null then format(' and s.correlation_id = %L', p_args ->> 'correlationId') end,
        case when p_args ->> 'transactionIdPrefix' is not null
             then format(' and s.transaction_id like %L',
                         regexp_replace(p_args ->> 'transactionIdPrefix', '([\\%_])', '\\\1', 'g') || '%') end);
    if p_args ->> 'queue' is null then
        return 'select s.* from queen.scheduled s where true' || v_where || v_order;
    elsif p_args ->> 'correlationId' is not null or p_args ->> 'transactionIdPrefix' is not null then
        return format('select s.* from queen.scheduled s where s.lane = any (%L)',
                      queen.waiting_lanes(p_args ->> 'queue', p_args ->> 'partition')) || v_where || v_order;
    end if;
    return format('select s.* from unnest(%L::bigint[]) l(num)
                    cross join lateral (select * from queen.scheduled s where s.lane = l.num %s %s) s %s',
                  queen.waiting_lanes(p_args ->> 'queue', p_args ->> 'partition'), v_where, v_order, v_order);
end
$$;
