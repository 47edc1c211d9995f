-- queen.latest_state: the newest version of a consumer's state.
--
-- A consumer always has one: the row and its first version are created in one transaction, and rotation
-- copies the newest versions before it empties a slot. Only the owner of the row lock may rely on the result; for
-- other callers it is a hint.
create or replace function queen.latest_state(p_consumer bigint)
returns setof queen.consumer_states
language sql stable rows 1
as $$
    select * from (
        (select * from queen.consumer_states_a where consumer = p_consumer order by ver desc limit 1)
        union all
        (select * from queen.consumer_states_b where consumer = p_consumer order by ver desc limit 1)
    ) both_slots
    order by ver desc limit 1
$$;
