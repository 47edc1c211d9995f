-- queen.lock_limits: begin a claim of a group on a work queue that has limits.
--
-- called by  queen.claim_work
-- in         p_key: only its partitions have limits; null: the queue has limits. p_wait: wait up to 50 ms for another claim, else not at all
-- out        false: another claim of the group that the limits concern, in any partition, is under way
-- locks      advisory (737022, queue and group, and the key if there is one), to the end of the transaction
create or replace function queen.lock_limits(p_queue uuid, p_group text, p_key text, p_wait boolean)
returns boolean
language plpgsql
as $$
declare
    v_key     int := hashtext(p_queue || ' ' || p_group || coalesce(' ' || p_key, ''));
    v_timeout text := current_setting('lock_timeout');
begin
    if pg_try_advisory_xact_lock(737022, v_key) then
        return true;
    elsif not p_wait then
        return false;
    end if;
    begin
        perform set_config('lock_timeout', '50ms', true);
        perform pg_advisory_xact_lock(737022, v_key);
        perform set_config('lock_timeout', v_timeout, true);
        return true;
    exception when lock_not_available then
        return false; -- the setting is as before, too
    end;
end
$$;
