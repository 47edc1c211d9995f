-- returns: make_slices void
select queen.make_slices(array(
    select greatest(now(), case when u.due is null then now() + u.delay * interval '1 microsecond'
                                else 'epoch'::timestamptz + u.due * interval '1 microsecond' end)
      from unnest($1::bigint[], $2::bigint[]) u(due, delay)))
