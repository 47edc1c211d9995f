-- queen.check_schedule: check the fields of a recurring message.
--
-- needs: cron_read, cron_next
-- called by  queen.create_schedule, queen.change_schedule
-- in         p_body: name, queue, partition, cron, timezone, payload, missed, paused; p_all: name, queue and cron are required
-- raises     QN001, naming the field
create or replace function queen.check_schedule(p_body jsonb, p_all boolean)
returns void
language plpgsql stable
as $$
declare
    v_name text;
begin
    foreach v_name in array array['name', 'queue', 'cron', 'partition', 'timezone', 'missed'] loop
        if p_body ? v_name or (p_all and v_name in ('name', 'queue', 'cron')) then
            if jsonb_typeof(p_body -> v_name) is distinct from 'string' or p_body ->> v_name = ''
               or char_length(p_body ->> v_name) > 255 then
                raise exception '% must be a string of 1 to 255 characters', v_name using errcode = 'QN001';
            end if;
        end if;
    end loop;
    if p_body ? 'cron' then
        perform queen.cron_read(p_body ->> 'cron');
        if queen.cron_next(p_body ->> 'cron', 'UTC', now()) is null then
            raise exception 'cron never fires: there is no such day' using errcode = 'QN001';
        end if;
    end if;
    -- UTC offsets are not accepted, because they have no daylight saving time.
    if p_body ? 'timezone' and not exists (select from pg_timezone_names z where z.name = p_body ->> 'timezone') then
        raise exception 'timezone must be an IANA name like Europe/Berlin' using errcode = 'QN001';
    elsif p_body ? 'missed' and p_body ->> 'missed' not in ('skip', 'once', 'all') then
        raise exception 'missed must be skip, once or all' using errcode = 'QN001';
    elsif p_body ? 'paused' and jsonb_typeof(p_body -> 'paused') <> 'boolean' then
        raise exception 'paused must be true or false' using errcode = 'QN001';
    end if;
end
$$;
