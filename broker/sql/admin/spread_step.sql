-- queen.spread_step: copy the options of a queue to some of its partitions, one bounded step.
--
-- needs: lane_page, notify_lanes
-- called by  queen.spread_options, queen.spread_queue, queen.spread_more
-- in         p_limit: maximum number of partitions. p_wait: if only locked partitions are left, wait for one of them
-- out        looked_at: number of partitions examined; changed: the step has made progress; done: nothing is left
-- effects    copies the options that partitions keep. If age limits have changed, the next sweep examines the partitions. Brokers
--            check partitions with messages again, because the new options may have made them available
-- locks      the row of configuring; lanes that differ, and lanes with skips, in num order, skipping those that are locked. With p_wait
--            finally one lane at a time, waiting
--
-- The row of configuring is locked by one step at a time, and by a transaction that changes the queue until it ends.  So no step
-- writes options that are older than those of another step.
-- A lane with skips is always careful, whatever the options. It is locked even if its options are right: the session that removes
-- its last skip (queen.mind_skips) may be copying the old options at this moment.
create or replace function queen.spread_step(
    p_queue uuid, p_limit int, p_wait boolean, out looked_at int, out changed boolean, out done boolean)
language plpgsql
as $$
declare
    s        queen.configuring%rowtype;
    q        queen.queues%rowtype;
    v_page   record;
    v_lanes  bigint[];
    v_differ bigint[];
    v_free   bigint[]; -- of these, those that no other transaction has locked
    v_locked bigint[]; -- the others
begin
    looked_at := 0;
    changed := false;
    select * into s from queen.configuring c where c.queue_id = p_queue for update;
    done := not found;
    if done then
        return;
    end if;
    select * into q from queen.queues where id = p_queue;
    if not found then
        delete from queen.configuring where queue_id = p_queue;
        done := true;
        return;
    end if;
    if s.looked then
        v_lanes := s.locked[1:p_limit];
    else
        select * into v_page from queen.lane_page(p_queue, s.after, p_limit);
        v_lanes := v_page.lanes;
    end if;
    looked_at := cardinality(v_lanes);
    -- Not joins: a plan made when there was one lane would scan all lanes for each.
    v_differ := array(
        select l.num from unnest(v_lanes) u(num)
         cross join lateral (select * from queen.lanes l where l.num = u.num offset 0) l
         where l.skipping or (l.lease_seconds, l.limited, l.careful, l.sealed)
                             is distinct from (q.lease_seconds, q.limited, q.careful, q.encryption_enabled)
         order by l.num);
    v_free := array(select l.num from unnest(v_differ) u(num)
                     cross join lateral (select l.num from queen.lanes l where l.num = u.num order by l.num for no key update skip locked) l);
    v_locked := array(select unnest(v_differ) except select unnest(v_free) order by 1);
    if p_wait and s.looked and v_free = '{}' and v_locked <> '{}' then
        perform from queen.lanes l where l.num = v_locked[1] for no key update;
        v_free := v_locked[1:1];
        v_locked := v_locked[2:];
    end if;
    update queen.lanes l
       set lease_seconds = q.lease_seconds, limited = q.limited, careful = q.careful or l.skipping, sealed = q.encryption_enabled
      from unnest(v_free) u(num)
     where l.num = u.num
       and (l.lease_seconds, l.limited, l.careful, l.sealed)
           is distinct from (q.lease_seconds, q.limited, q.careful or l.skipping, q.encryption_enabled);

    -- A message of an uncommitted transaction will be reported by that transaction.
    if not s.looked then
        v_lanes := array(select u.num from unnest(v_lanes) u(num)
                          where (select g.count from queen.segments g
                                  where g.lane = u.num order by g.first_seq desc limit 1) > 0);
        if s.ages then
            insert into queen.lane_due (lane, evict_at, retain_at)
            select u.num, now(), now() from unnest(v_lanes) u(num) order by u.num
                on conflict (lane) do update set evict_at = excluded.evict_at, retain_at = excluded.retain_at;
        end if;
    else
        v_lanes := v_free;
    end if;
    if v_lanes <> '{}' then
        perform queen.notify_lanes(0, v_lanes);
    end if;

    changed := not s.looked or v_free <> '{}';
    if s.looked then
        s.locked := v_locked || s.locked[p_limit + 1:];
    else
        s.locked := s.locked || v_locked;
        s.looked := not v_page.more;
        s.after := v_page.names[cardinality(v_page.names)];
    end if;
    done := s.looked and s.locked = '{}';
    if done then
        delete from queen.configuring where queue_id = p_queue;
    elsif changed then
        update queen.configuring set after = s.after, looked = s.looked, locked = s.locked where queue_id = p_queue;
    end if;
end
$$;
