-- A last row with lane 0 asks for the next page.  A retry lane comes with the name of its partition and its group, others with null.
-- returns: lane int8, lane_id uuid, lane_name text, consumer int8, pending bool, lease_us int8?,
-- returns: partition_name text?, only_group text?
select lane, lane_id, lane_name, consumer, pending, lease_us, partition_name, only_group
  from (select d.*, o.name::text as partition_name, r.name::text as only_group
          from queen.discover_page($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text)
               with ordinality d(lane, lane_id, lane_name, consumer, pending, lease_us, ord)
          left join queen.lanes r on r.num = d.lane and r.origin is not null
          left join queen.lanes o on o.num = r.origin) d
 order by ord
