-- queen.redrive_request: reject an invalid body of POST /api/v1/dlq/redrive.
--
-- called by  queen.redrive
-- raises     QN001, naming the field
create or replace function queen.redrive_request(p_body jsonb)
returns void
language plpgsql immutable
as $$
declare
    f      record;
    v_what text;
begin
    for f in select key, value, jsonb_typeof(value) as type from jsonb_each(p_body) order by key loop
        v_what := case
            when f.key in ('queue', 'partition', 'consumerGroup', 'error', 'exactError', 'targetQueue') then
                case when f.type <> 'string' or length(f.value #>> '{}') not between 1 and 255 then 'a string of 1 to 255 characters' end
            when f.key in ('from', 'to') then
                case when f.type <> 'string' then 'a time' end
            when f.key = 'ids' then
                case when f.type <> 'array' or jsonb_array_length(f.value) not between 1 and 10000
                       or exists (select from jsonb_array_elements(f.value) e
                                   where jsonb_typeof(e) <> 'string'
                                      or e #>> '{}' !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
                     then 'an array of 1 to 10000 UUIDs' end
            when f.key = 'all' then
                case when f.type <> 'boolean' then 'true or false' end
            when f.key = 'ratePerSecond' then
                case when f.type <> 'number' or f.value::numeric not between 0.001 and 1000000 then 'a number from 0.001 to 1000000' end
            when f.key = 'limit' then
                case when f.type <> 'number' or f.value::numeric not between 1 and 10000 or f.value::numeric % 1 <> 0
                     then 'a whole number from 1 to 10000' end
            else 'left out: there is no such field' end;
        if v_what is not null then
            raise exception '% must be %', f.key, v_what using errcode = 'QN001';
        end if;
    end loop;
    if not p_body ?| array['ids', 'queue', 'partition', 'consumerGroup', 'error', 'exactError', 'from', 'to']
       and p_body -> 'all' is distinct from 'true' then
        raise exception 'ids, a filter (queue, partition, consumerGroup, error, exactError, from, to) or all: true must be given' using errcode = 'QN001';
    end if;
end
$$;
