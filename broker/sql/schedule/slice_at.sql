-- queen.slice_at: the number of the slice of queen.scheduled for a time, whether or not that slice exists.
create or replace function queen.slice_at(p_due timestamptz)
returns int
language sql stable parallel safe -- not immutable, because date_part is declared stable and it would not be inlined
as $$
    select floor(date_part('epoch', p_due) / 3600)::int
$$;
