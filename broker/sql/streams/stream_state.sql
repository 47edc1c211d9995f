-- queen.stream_state: POST /streams/v1/state/get.
--
-- needs: body_text, body_uuid
-- called by  broker/src/api/messages/streams.c (call "stream_state")
-- in         p_args.body: {query_id, partition_id, keys?, key_prefix?, ripe_at_or_before?}
-- out        {"success":true,"rows":[{"key","value","updated_at"}]} in byte order of the keys
-- raises     QN001, naming the field
create or replace function queen.stream_state(p_args jsonb)
returns text
language plpgsql stable
as $$
declare
    v_body      jsonb := p_args -> 'body';
    v_query     uuid := queen.body_uuid(v_body, 'query_id');
    v_partition uuid := queen.body_uuid(v_body, 'partition_id');
    v_prefix    text := coalesce(queen.body_text(v_body, 'key_prefix', false), '');
    v_last      int;
    v_behind    text;    -- the first key after all keys with the prefix; null: none
    v_keys      text[];
    v_ripe      numeric;
    v_rows      text;
begin
    case jsonb_typeof(coalesce(v_body -> 'keys', 'null'))
        when 'null' then null;
        when 'array' then
            if exists (select from jsonb_array_elements(v_body -> 'keys') k where jsonb_typeof(k) <> 'string') then
                raise exception 'keys must be an array of strings' using errcode = 'QN001';
            end if;
            select array_agg(k) into v_keys from jsonb_array_elements_text(v_body -> 'keys') k;
        else
            raise exception 'keys must be an array of strings' using errcode = 'QN001';
    end case;
    case jsonb_typeof(coalesce(v_body -> 'ripe_at_or_before', 'null'))
        when 'null' then null;
        when 'number' then v_ripe := floor((v_body ->> 'ripe_at_or_before')::numeric);
        else raise exception 'ripe_at_or_before must be a number' using errcode = 'QN001';
    end case;
    if v_prefix <> '' then
        v_last := ascii(right(v_prefix, 1));
        v_behind := case when v_last < 1114111
                         then left(v_prefix, -1) || chr(case when v_last = 55295 then 57344 else v_last + 1 end) end;
    end if;

    if v_keys is not null then
        select string_agg(r.line, ',' order by r.key) into v_rows
          from (select s.key, '{"key":' || to_json(s.key) || ',"value":' || s.value || ',"updated_at":'
                       || left(to_json(s.updated_at at time zone 'UTC')::text, -1) || '+00:00"}' as line
                  from queen_streams.state s
                 where s.query_id = v_query and s.partition_id = v_partition and s.key = any (v_keys)
                   and starts_with(s.key, v_prefix)
                   and (v_ripe is null or case when jsonb_typeof(s.value -> 'windowEnd') = 'number'
                                               then (s.value ->> 'windowEnd')::numeric <= v_ripe end)) r;
    else
        select string_agg(r.line, ',' order by r.key) into v_rows
          from (select s.key, '{"key":' || to_json(s.key) || ',"value":' || s.value || ',"updated_at":'
                       || left(to_json(s.updated_at at time zone 'UTC')::text, -1) || '+00:00"}' as line
                  from queen_streams.state s
                 where s.query_id = v_query and s.partition_id = v_partition
                   and s.key >= v_prefix and (v_behind is null or s.key < v_behind) and starts_with(s.key, v_prefix)
                   and (v_ripe is null or case when jsonb_typeof(s.value -> 'windowEnd') = 'number'
                                               then (s.value ->> 'windowEnd')::numeric <= v_ripe end)) r;
    end if;
    return '{"success":true,"rows":[' || coalesce(v_rows, '') || ']}';
end
$$;
