-- statement: forget_consumers
-- returns: next int8, removed int8
select next, removed from queen.forget_consumers($1::bigint, $2::int, $3::int);

-- statement: rotate
-- returns: rotate text?
select queen.rotate($1::int, $2::bigint) where queen.try_chores();

-- statement: sweep
-- returns: queue_name text?, type text?, removed int8?, after_us int8?, after_lane int8?, more bool?
select queue_name, type, removed, after_us, after_lane, more
  from queen.sweep($1::boolean, $2::int, $3::int, $4::bigint, $5::bigint, $6::bigint);

-- statement: tidy
-- returns: queue_name text?, removed int8?, more bool?
select queue_name, removed, more
  from (select t.queue_name, t.removed, t.more from queen.tidy($1::int, $2::int, $3::int) t
         union all
        select null::text, 0::bigint, queen.trim_attempts($4::int, $3::int)
         union all
        select null::text, 0::bigint, queen.trim_audit($5::int, $3::int)) t;

-- statement: trim_metrics
-- returns: trim_metrics int8
select queen.trim_metrics($1::int, $2::int);
