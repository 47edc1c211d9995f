-- queen.redrive_elsewhere: push dead letters as new messages to another queue, into partitions of the same names.
--
-- numbers:   status scheduled_status
-- needs: messages_at, ensure_lanes, schedule_messages, pack_message, note_attempt
-- called by  queen.redrive, which has locked the dead letters and deletes them
-- in         p_letters; p_due: when each is due
-- out        the dead letters that were pushed: not those whose message is gone
-- raises     QN001 if the target is encrypted and a message is not (only a broker can seal it), or if it has a fixed set of
--            partitions without one of these names; 40001 if it is deleted meanwhile
--
-- The transaction ids are derived from the ids of the dead letters, so that a repeated call does not push a message twice.
create or replace function queen.redrive_elsewhere(p_letters uuid[], p_due timestamptz[], p_target text, p_now timestamptz)
returns uuid[]
language plpgsql
as $$
declare
    d record;
    t record; -- the target lanes
begin
    select array_agg(k.id order by u.ord) as id, array_agg(l.num order by u.ord) as lane, array_agg(l.name::text order by u.ord) as part,
           array_agg(k.consumer_group::text order by u.ord) as grp, array_agg(m.message order by u.ord) as message,
           array_agg(c.id order by u.ord) as correlation, array_agg(u.due order by u.ord) as due,
           array_agg('redrive-' || k.id order by u.ord) as txid, array_agg(k.retry_count + 1 order by u.ord) as attempt
      into d
      from unnest(p_letters, p_due) with ordinality u(id, due, ord)
      join queen.dead_letter_queue k on k.id = u.id
      join queen.lanes l on l.id = k.partition_id
      cross join lateral queen.messages_at(k.lane, array[k.seq]) m
      cross join lateral (select coalesce((m.message).meta::jsonb ->> 'correlationId', (m.message).transaction_id)) c(id);
    if d.id is null then
        return '{}';
    end if;
    select array_agg(e.lane order by e.idx) as num into t
      from queen.ensure_lanes(array_fill(p_target, array[cardinality(d.id)]), d.part) e;
    if cardinality(t.num) is distinct from cardinality(d.id) then
        raise exception 'the target queue is being deleted' using errcode = '40001';
    elsif -1 = any (t.num) then
        raise exception 'targetQueue "%" has a fixed set of partitions and "%" is not one of them', p_target,
            d.part[array_position(t.num, -1::bigint)] using errcode = 'QN001';
    end if;
    if exists (select from queen.queues q where q.name = p_target and q.encryption_enabled)
       and exists (select from unnest(d.message) m where not m.is_encrypted) then
        raise exception 'targetQueue "%" is encrypted, but some of the messages are not', p_target using errcode = 'QN001';
    end if;
    perform from queen.schedule_messages(
        0, true, t.num, array(select queen.transaction_key(x) from unnest(d.txid) x),
        array(select (extract(epoch from x) * 1000000)::bigint from unnest(d.due) x), array_fill(null::bigint, array[cardinality(d.id)]),
        d.txid, d.correlation,
        array(select queen.pack_message(d.txid[i], (d.message[i]).trace_id, (d.message[i]).producer_sub,
                         (d.message[i]).is_encrypted, null,
                         ((coalesce((d.message[i]).meta::jsonb, '{}') - array['attempt', 'firstFailedAt', 'lastError'])
                          || jsonb_build_object('correlationId', d.correlation[i]))::text, (d.message[i]).payload)
                from generate_series(1, cardinality(d.id)) i order by i),
        array_fill(null::int, array[cardinality(d.id)])) s
      where s.status not in (0, 1); -- 1: it was redriven before
    if found then
        raise exception 'the target queue is being deleted' using errcode = '40001';
    end if;
    perform queen.note_attempt(d.message[i], d.grp[i], d.lane[i], d.attempt[i], 'm', d.correlation[i], null, p_now, d.due[i], null,
                               null, null, null, p_target)
       from generate_series(1, cardinality(d.id)) i;
    return d.id;
end
$$;
