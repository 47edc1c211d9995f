-- queen.check_retry_policy: reject an invalid retry policy.
--
-- called by  queen.configure_queue; queen.read_items (a message's own)
-- in         p_policy: JSON; p_name: its name in error messages; p_part: it belongs to a message or event type and must not contain byType
-- raises     QN001, naming the field, for a wrong type or range and for an unknown field
--
-- Only the given fields are checked and stored. Defaults are filled in when the policy is applied (queen.fill_retry_policy), so that
-- the policy of an event type or message overrides only the fields that it names. lib/json/retry_policy.c applies the same rules.
create or replace function queen.check_retry_policy(p_policy jsonb, p_name text, p_part boolean)
returns void
language plpgsql immutable
as $$
declare
    f      record;
    v_what text;  -- the expected value
    v_part record;
begin
    if jsonb_typeof(p_policy) is distinct from 'object' then
        raise exception '% must be an object', p_name using errcode = 'QN001';
    end if;
    for f in select key, value, jsonb_typeof(value) as type from jsonb_each(p_policy) order by key loop
        v_what := case f.key
            when 'mode' then
                case when f.value not in ('"inline"', '"scheduled"') then '"inline" or "scheduled"' end
            when 'strategy' then
                case when f.value not in ('"fibonacci"', '"exponential"', '"fixed"', '"list"')
                     then '"fibonacci", "exponential", "fixed" or "list"' end
            when 'base' then
                case when f.type <> 'number' or f.value::numeric not between 0.001 and 315360000
                     then 'a number of seconds from 0.001 to 315360000' end
            when 'floor' then
                case when f.type <> 'number' or f.value::numeric not between 0 and 315360000
                     then 'a number of seconds from 0 to 315360000' end
            when 'cap' then
                case when f.type <> 'number' or f.value::numeric not between 0.001 and 315360000
                     then 'a number of seconds from 0.001 to 315360000' end
            when 'jitter' then
                case when f.type <> 'number' or f.value::numeric not between 0 and 1 then 'a number from 0 to 1' end
            when 'maxAttempts' then
                case when f.type <> 'number' or f.value::numeric not between 1 and 1000 or f.value::numeric % 1 <> 0
                     then 'a whole number from 1 to 1000' end
            when 'delays' then
                case when f.type <> 'array' or jsonb_array_length(f.value) not between 1 and 1000
                       or exists (select from jsonb_array_elements(f.value) e
                                   where case when jsonb_typeof(e) = 'number'
                                              then e::numeric not between 0 and 315360000 else true end)
                     then 'an array of 1 to 1000 numbers of seconds from 0 to 315360000' end
            when 'nonRetryable' then
                case when f.type <> 'array' or jsonb_array_length(f.value) > 1000
                       or exists (select from jsonb_array_elements(f.value) e
                                   where jsonb_typeof(e) <> 'string' or length(e #>> '{}') not between 1 and 255)
                     then 'an array of at most 1000 error codes of 1 to 255 characters' end
            when 'byType' then
                case when p_part then 'given for the whole queue only'
                     when f.type <> 'object' then 'an object of policies by event type' end
            else 'left out: there is no such field' end;
        if v_what is not null then
            raise exception '%.% must be %', p_name, f.key, v_what using errcode = 'QN001';
        end if;
    end loop;
    if p_policy ->> 'strategy' = 'list' and not p_policy ? 'delays' and not p_part then
        raise exception '%.delays must be given for strategy "list"', p_name using errcode = 'QN001';
    end if;
    if p_policy ? 'delays' and p_policy ->> 'strategy' is distinct from 'list' then
        raise exception '%.delays is read only with strategy "list": give both', p_name using errcode = 'QN001';
    end if;
    if (p_policy ->> 'floor')::numeric > (p_policy ->> 'cap')::numeric then
        raise exception '%.floor must be at most %.cap', p_name, p_name using errcode = 'QN001';
    end if;
    for v_part in select key, value from jsonb_each(p_policy -> 'byType') order by key loop
        perform queen.check_retry_policy(v_part.value, p_name || '.byType.' || v_part.key, true);
    end loop;
end
$$;
