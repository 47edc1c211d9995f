-- Result of storing a scheduled message (queen.schedule_messages):
-- enum scheduled_status: SCHEDULED_WAITS 0, SCHEDULED_DUPLICATE 1, SCHEDULED_LANE_GONE 3, SCHEDULED_LANE_SEALED 6, SCHEDULED_NO_KEY 7

-- statement: cancel_scheduled_one
-- returns: @answer
select status, answer::text, null::bytea, false from queen.cancel_scheduled_one($1::text::jsonb);

-- statement: cancel_scheduled_where
-- returns: @answer
select status, answer::text, null::bytea, false from queen.cancel_scheduled_where($1::text::jsonb);

-- statement: change_schedule
-- returns: @answer
select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'change');

-- statement: count_scheduled
-- returns: @answer
select 200, queen.count_scheduled($1::text::jsonb)::text, null::bytea, false;

-- statement: create_schedule
-- returns: @answer
select status, piece, payload, sealed from queen.create_schedule($1::text::jsonb);

-- statement: delete_schedule
-- returns: @answer
select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'delete');

-- statement: fire_scheduled
-- A retry lane has the name of its partition and its group; other lanes have null.
-- returns: lane int8?, lane_id uuid?, lane_name text?, queue_name text?, count int4?, late bytea?, more bool?,
-- returns: busy bool?, wait_us int8?, through_us int8?, partition_name text?, only_group text?
select lane, lane_id, lane_name, queue_name, count, late, more, busy, wait_us, through_us, partition_name, only_group
  from (select f.*, o.name::text as partition_name, r.name::text as only_group
          from queen.fire_scheduled($1::int, $2::int, $3::bigint)
               with ordinality f(lane, lane_id, lane_name, queue_name, count, late, more, busy, wait_us, through_us, ord)
          left join queen.lanes r on r.num = f.lane and r.origin is not null
          left join queen.lanes o on o.num = r.origin) f
 order by ord;

-- statement: get_schedule
-- returns: @answer
select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'get');

-- statement: get_scheduled
-- returns: @answer
select status, piece, payload, sealed from queen.get_scheduled($1::text::jsonb);

-- statement: list_scheduled
-- returns: @answer
select 200, queen.list_scheduled($1::text::jsonb)::text, null::bytea, false;

-- statement: list_schedules
-- returns: @answer
select status, piece, payload, sealed from queen.list_schedules($1::text::jsonb);

-- statement: maintain_slices
-- returns: made int4, dropped int4
select made, dropped from queen.maintain_slices();

-- statement: pause_schedule
-- returns: @answer
select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'pause');

-- statement: reschedule
-- returns: @answer
select status, answer::text, null::bytea, false from queen.reschedule($1::text::jsonb);

-- statement: resume_schedule
-- returns: @answer
select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'resume');

-- statement: run_schedule_now
-- returns: @answer
select status, answer::text, null::bytea, false from queen.run_schedule_now($1::text::jsonb);

-- statement: schedule
-- returns: status int2, id uuid?, due_at timestamptz?, wait_us int8?, idx int4
select status, id, due_at,
       case when status = 0 then (extract(epoch from due_at - clock_timestamp()) * 1000000)::int8 end as wait_us, idx
  from queen.schedule_messages($1::int, $2::boolean, $3::bigint[], $4::uuid[], $5::bigint[], $6::bigint[],
                               $7::text[], $8::text[], $9::bytea[], $10::int[])
 order by idx;

-- statement: seal_schedules
-- returns: @answer
select status, piece, payload, sealed from queen.seal_schedules($1::text::jsonb);
