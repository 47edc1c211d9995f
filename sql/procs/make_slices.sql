-- queen.make_slices: slices of queen.scheduled for these times, where there are none.
--
-- needs: slices_missing
-- called by  src/broker/schedule.c (call "make_slices"), in a transaction of its own, before the rows are written; queen.schedule_rows
-- in         times; hours are made for the next two days, days for two months, months beyond.  A slice that exists
--            already is never changed: a new one takes what is left beside it
-- locks      advisory 737020 to the end of the transaction, one maker at a time; nothing is waited for after it.  ATTACH takes SHARE
--            UPDATE EXCLUSIVE on queen.scheduled, which stops neither readers nor writers
create or replace function queen.make_slices(p_due timestamptz[])
returns void
language plpgsql
as $$
declare
    v_at   timestamptz; -- full hours
    v_unit text;
    v_from timestamptz;
    v_to   timestamptz;
    v_name text;
begin
    perform pg_advisory_xact_lock(737020);
    for v_at in select distinct date_trunc('hour', d, 'UTC') as at from unnest(p_due) d order by at loop
        continue when not queen.slices_missing(array[v_at]);
        v_unit := case when v_at < now() + interval '2 days' then 'hour'
                       when v_at < now() + interval '62 days' then 'day' else 'month' end;
        v_from := date_trunc(v_unit, v_at, 'UTC');
        v_to := ((v_from at time zone 'UTC') + ('1 ' || v_unit)::interval) at time zone 'UTC';
        select greatest(v_from, max(s.to_at)) into v_from from queen.scheduled_slices s where s.to_at <= v_at;
        select least(v_to, min(s.from_at)) into v_to from queen.scheduled_slices s where s.from_at > v_at;
        v_name := 'scheduled_' || to_char(v_from at time zone 'UTC', 'YYYYMMDDHH24') || '_'
                               || to_char(v_to at time zone 'UTC', 'YYYYMMDDHH24');
        -- Made beside the parent and attached, because CREATE ... PARTITION OF would stop everybody.
        execute format('create table queen.%I (like queen.scheduled including all)
                        with (vacuum_truncate = off, toast.vacuum_truncate = off)', v_name);
        execute format('alter table queen.scheduled attach partition queen.%I for values from (%L) to (%L)',
                       v_name, v_from, v_to);
        insert into queen.scheduled_slices (from_at, to_at, name) values (v_from, v_to, v_name);
    end loop;
end
$$;
