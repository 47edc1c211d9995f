-- queen.add_dead_letter: store a message as a dead letter of a group.
--
-- called by  queen.fail_message, queen.dead_letter, queen.cancel_retries
-- in         p_lane, p_seq: where the message is stored; p_error null or '': 'Retries exhausted'
-- effects    if the group already has this dead letter, updates its error, retry count and time
-- locks      the dead letter; skips it if a redrive has locked it, because that redrive delivers the message again
create or replace function queen.add_dead_letter(
    p_message_id uuid, p_partition_id uuid, p_lane bigint, p_seq bigint, p_group text, p_error text, p_retries int)
returns void
language plpgsql
as $$
begin
    update queen.dead_letter_queue d
       set error_message = coalesce(nullif(p_error, ''), 'Retries exhausted'), retry_count = p_retries, failed_at = now()
     where d.id = (select k.id from queen.dead_letter_queue k
                    where k.message_id = p_message_id and k.consumer_group = p_group for update skip locked);
    if not found then
        insert into queen.dead_letter_queue (message_id, partition_id, consumer_group, error_message, retry_count,
                                             original_created_at, lane, seq)
        values (p_message_id, p_partition_id, p_group, coalesce(nullif(p_error, ''), 'Retries exhausted'), p_retries,
                (select s.created_at from queen.segments s where s.lane = p_lane and s.first_seq <= p_seq
                  order by s.first_seq desc limit 1),
                p_lane, p_seq)
            on conflict (message_id, consumer_group) do nothing;
    end if;
end
$$;
