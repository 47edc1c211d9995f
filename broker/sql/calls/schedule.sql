-- returns: status int2, id uuid?, due_at timestamptz?, wait_us int8?, idx int4
select status, id, due_at,
       case when status = 0 then (extract(epoch from due_at - clock_timestamp()) * 1000000)::int8 end as wait_us, idx
  from queen.schedule_messages($1::int, $2::boolean, $3::bigint[], $4::uuid[], $5::bigint[], $6::bigint[],
                               $7::text[], $8::text[], $9::bytea[], $10::int[])
 order by idx
