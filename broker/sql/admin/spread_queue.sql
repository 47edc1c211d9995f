-- queen.spread_queue: the next step of a change of a queue's options.
--
-- needs: spread_step, step_lanes
-- called by  broker/src/api/admin/configure.c (call "spread_queue"), again while the status is 0
-- in         p_args.queueId
-- out        200: all partitions have the options.  0: call again with the answer
-- locks      as queen.spread_step; waits for partitions that another transaction has locked when no others are left
create or replace function queen.spread_queue(p_args jsonb)
returns table (status int, answer json)
language sql volatile
as $$
    select case when t.done then 200 else 0 end, p_args::json
      from queen.spread_step((p_args ->> 'queueId')::uuid, queen.step_lanes(), true) t
$$;
