-- A retry lane comes with the name of its partition and its group, others with null.
-- returns: lane int8?, lane_id uuid?, lane_name text?, queue_name text?, count int4?, late bytea?, more bool?,
-- returns: busy bool?, wait_us int8?, through_us int8?, partition_name text?, only_group text?
select lane, lane_id, lane_name, queue_name, count, late, more, busy, wait_us, through_us, partition_name, only_group
  from (select f.*, o.name::text as partition_name, r.name::text as only_group
          from queen.fire_due($1::int, $2::int, $3::bigint)
               with ordinality f(lane, lane_id, lane_name, queue_name, count, late, more, busy, wait_us, through_us, ord)
          left join queen.lanes r on r.num = f.lane and r.origin is not null
          left join queen.lanes o on o.num = r.origin) f
 order by ord
