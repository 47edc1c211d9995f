-- returns: queue_name text?, removed int8?, more bool?
select queue_name, removed, more
  from (select t.queue_name, t.removed, t.more from queen.tidy($1::int, $2::int, $3::int) t
         union all
        select null::text, 0::bigint, queen.trim_attempts($4::int, $3::int)) t
