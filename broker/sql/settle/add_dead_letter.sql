-- queen.add_dead_letter: queen.add_dead_letters for one message.
--
-- needs: add_dead_letters
-- called by  queen.dead_letter, queen.cancel_retries, queen.set_aside
create or replace function queen.add_dead_letter(
    p_message_id uuid, p_partition_id uuid, p_lane bigint, p_seq bigint, p_group text, p_error text, p_retries int)
returns void
language sql
as $$
    select queen.add_dead_letters(array[p_message_id], array[p_partition_id], array[p_lane], array[p_seq], p_group,
                                  array[p_error], array[p_retries])
$$;
