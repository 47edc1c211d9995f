-- queen.work_place: where one message of a work queue is for a group.
--
-- needs: hold_of
-- called by  queen.get_message, queen.newest_messages, queen.timeline_groups
-- in         columns of the state of its consumer: p_taken, p_from (holds_from), p_walk, p_cursor; p_seq: the message
-- out        consumed: it is settled; leased_until: a consumer has it until then, since leased_at. Neither: it waits, perhaps after it was given back
create or replace function queen.work_place(p_consumer bigint, p_cursor bigint, p_taken bigint, p_from bigint, p_walk bigint, p_seq bigint)
returns table (consumed boolean, leased_until timestamptz, leased_at timestamptz)
language sql stable rows 1
as $$
    select p_seq <= p_cursor or p_seq <= p_taken and h.consumer is null,
           case when h.lease is not null and h.until > clock_timestamp() then h.until end,
           case when h.lease is not null and h.until > clock_timestamp() then h.at end
      from (select 1) one
      left join lateral (select k.* from queen.hold_of(p_consumer, p_from, p_walk, p_seq) k where p_seq > p_cursor and p_seq <= p_taken) h on true
$$;
