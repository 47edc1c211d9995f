-- queen.cancel_scheduled: cancel scheduled messages.
--
-- called by  queen.cancel_scheduled_one, queen.cancel_scheduled_where
-- in         p_slice, p_due_at, p_num: the rows; each is found by an index probe in its own slice
-- out        the number of cancelled messages, without those that are being delivered at the moment
-- locks      the rows, skipping those of others
-- needs: cancel_retries
-- effects    the transaction ids can be used again; the message of a cancelled retry becomes a dead letter (queen.cancel_retries)
create or replace function queen.cancel_scheduled(p_slice int[], p_due_at timestamptz[], p_num bigint[])
returns bigint
language plpgsql
-- One probe per row through (due_at, num) of its slice.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_slice int[];
    v_num  bigint[];
    v_due  timestamptz[];
    v_gone record;
begin
    -- First the locks, without waiting: queen.fire_scheduled may hold some of them.
    select array_agg(k.slice), array_agg(k.num), array_agg(k.due_at) into v_slice, v_num, v_due
      from unnest(p_slice, p_num, p_due_at) u(slice, num, due_at)
      cross join lateral (select s.slice, s.num, s.due_at from queen.scheduled s
                           where s.slice = u.slice and s.due_at = u.due_at and s.num = u.num for update skip locked) k;
    with gone as (
        delete from queen.scheduled s using unnest(v_slice, v_num, v_due) u(slice, num, due_at)
         where s.slice = u.slice and s.due_at = u.due_at and s.num = u.num
        returning s.lane, s.key, s.num, s.kind, s.grp, s.attempt, s.message
    ), freed as (
        delete from queen.message_keys m using gone g
         where g.kind = 'p' and m.lane = g.lane and m.key = g.key and m.seq = -g.num
    )
    select count(*) as n, array_agg(g.lane) filter (where g.kind = 'r') as lane, array_agg(g.key) filter (where g.kind = 'r') as key,
           array_agg(g.grp) filter (where g.kind = 'r') as grp, array_agg(g.attempt) filter (where g.kind = 'r') as attempt,
           array_agg(g.message) filter (where g.kind = 'r') as message
      into v_gone
      from gone g;
    if v_gone.lane is not null then
        perform queen.cancel_retries(v_gone.lane, v_gone.key, v_gone.grp, v_gone.attempt, v_gone.message);
    end if;
    return v_gone.n;
end
$$;
