-- statement: changes
-- A retry lane has the name of its partition and its group; other lanes have null.
-- returns: snapshot text?, lane int8?, lane_id uuid?, lane_name text?, queue_name text?, emptied int8?,
-- returns: flags int4?, wait_us int8?, partition_name text?, only_group text?
select snapshot, lane, lane_id, lane_name, queue_name, emptied, flags, wait_us, partition_name, only_group
  from (select c.*, case when c.lane is null then queen.maintenance_flags() end as flags,
               case when c.lane is null then queen.next_due($3::bigint) end as wait_us,
               o.name::text as partition_name, r.name::text as only_group
          from queen.changes_since($1::text, $2::int) c
          left join queen.lanes r on r.num = c.lane and r.origin is not null
          left join queen.lanes o on o.num = r.origin) c;

-- statement: listen_pushed
-- returns: listen_pushed bool?
select queen.listen_pushed();

-- statement: await_pushed
-- returns: await_pushed bool?
select queen.await_pushed($1::boolean);
