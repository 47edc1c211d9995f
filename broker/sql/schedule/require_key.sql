-- queen.require_key: refuse a recurring message that cannot be sealed, unless its queue allows messages in clear.
--
-- called by  queen.create_schedule, queen.change_schedule
-- in         p_args.sealed: false: the caller has no key and must not store in clear what should be sealed
-- raises     QN001
create or replace function queen.require_key(p_queue text, p_args jsonb)
returns void
language plpgsql stable
as $$
begin
    if p_args -> 'sealed' = 'false'
       and exists (select from queen.queues q where q.name = p_queue and q.encryption_enabled and not q.allow_unencrypted) then
        raise exception 'the queue has encryptionEnabled, but this broker has no QUEEN_ENCRYPTION_KEY' using errcode = 'QN001';
    end if;
end
$$;
