-- queen.add_dead_letters: put messages among the dead letters of a group.
--
-- called by  queen.fail_messages, queen.add_dead_letter
-- in         one element per message: its id, partition, place (p_lane, p_seq), error ('' or null: 'Retries exhausted'; cut at 4000 characters) and retry count
-- effects    a message that is there already keeps its row, which gets the new error, count and time
-- locks      the rows, skipping those that a redrive holds: that redrive delivers the message again
create or replace function queen.add_dead_letters(
    p_message_id uuid[], p_partition_id uuid[], p_lane bigint[], p_seq bigint[], p_group text, p_error text[], p_retries int[])
returns void
language plpgsql
as $$
declare
    v_there uuid[];
begin
    with touched as (
        update queen.dead_letter_queue d
           set error_message = left(coalesce(nullif(u.error, ''), 'Retries exhausted'), 4000), retry_count = u.retries, failed_at = now()
          from unnest(p_message_id, p_error, p_retries) u(message_id, error, retries)
          cross join lateral (select k.id from queen.dead_letter_queue k
                               where k.message_id = u.message_id and k.consumer_group = p_group for update skip locked) k
         where d.id = k.id
        returning d.message_id)
    select array_agg(t.message_id) into v_there from touched t;
    insert into queen.dead_letter_queue (message_id, partition_id, consumer_group, error_message, retry_count,
                                         original_created_at, lane, seq)
    select u.message_id, u.partition_id, p_group, left(coalesce(nullif(u.error, ''), 'Retries exhausted'), 4000), u.retries,
           (select s.created_at from queen.segments s where s.lane = u.lane and s.first_seq <= u.seq
             order by s.first_seq desc limit 1),
           u.lane, u.seq
      from unnest(p_message_id, p_partition_id, p_lane, p_seq, p_error, p_retries) u(message_id, partition_id, lane, seq, error, retries)
     where v_there is null or u.message_id <> all (v_there)
        on conflict (message_id, consumer_group) do nothing;
end
$$;
