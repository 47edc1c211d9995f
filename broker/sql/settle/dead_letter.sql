-- queen.dead_letter: store a message of a lane as a dead letter of a group.
--
-- needs: stored_id, add_dead_letter
-- called by  queen.move_to_dlq
create or replace function queen.dead_letter(
    p_lane bigint, p_lane_id uuid, p_seq bigint, p_group text, p_error text, p_retries int)
returns void
language sql
as $$
    select queen.add_dead_letter(queen.stored_id(p_lane, p_seq), p_lane_id, p_lane, p_seq, p_group, p_error, p_retries)
$$;
