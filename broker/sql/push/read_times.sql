-- queen.read_times: check scheduledAt and delaySeconds of the items of a push given as JSON.
--
-- called by  queen.push_items; queen.execute_transaction_v2
-- in         p_items: array as in POST /api/v1/push
-- out        one row per item that has a time, in order: due_us or delay_us, as queen.schedule_messages takes them
-- raises     QN001, naming the item, where the HTTP interface answers 400
create or replace function queen.read_times(p_items jsonb)
returns table (idx int, due_us bigint, delay_us bigint)
language plpgsql
as $$
declare
    i     record;
    v_max constant double precision := 315576000; -- ten years
begin
    for i in
        select (e.ord - 1)::int as idx, nullif(e.value -> 'scheduledAt', 'null') as at, nullif(e.value -> 'delaySeconds', 'null') as delay
          from jsonb_array_elements(p_items) with ordinality e(value, ord)
         where jsonb_typeof(e.value) = 'object' and (e.value ? 'scheduledAt' or e.value ? 'delaySeconds')
         order by e.ord
    loop
        idx := i.idx; due_us := null; delay_us := null;
        continue when i.at is null and i.delay is null;
        if i.at is not null and i.delay is not null then
            raise exception 'item %: scheduledAt and delaySeconds exclude each other', i.idx using errcode = 'QN001';
        elsif i.at is not null then
            if jsonb_typeof(i.at) <> 'string'
               or i.at #>> '{}' !~* '^\d{4}-\d\d-\d\d[t ]\d\d:\d\d(:\d\d([.,]\d+)?)?(z|[+-]\d\d(:?\d\d)?)$' then
                raise exception 'item %: scheduledAt must be an ISO 8601 time with a zone', i.idx using errcode = 'QN001';
            end if;
            begin
                due_us := (extract(epoch from (i.at #>> '{}')::timestamptz) * 1000000)::bigint;
            exception when datetime_field_overflow or invalid_datetime_format then
                raise exception 'item %: scheduledAt must be an ISO 8601 time with a zone', i.idx using errcode = 'QN001';
            end;
            if due_us > (extract(epoch from now()) + v_max) * 1000000 then
                raise exception 'item %: scheduledAt must be within 10 years', i.idx using errcode = 'QN001';
            end if;
        else
            if jsonb_typeof(i.delay) <> 'number' or (i.delay #>> '{}')::numeric < 0 then
                raise exception 'item %: delaySeconds must be a number of 0 or more', i.idx using errcode = 'QN001';
            elsif (i.delay #>> '{}')::numeric > v_max then
                raise exception 'item %: delaySeconds must be within 10 years', i.idx using errcode = 'QN001';
            end if;
            delay_us := ((i.delay #>> '{}')::numeric * 1000000)::bigint;
        end if;
        return next;
    end loop;
end
$$;
