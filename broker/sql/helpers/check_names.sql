-- queen.check_names: refuse a member that is nearly a known one, because ignoring it would change the meaning of the call.
--
-- needs: is_near
-- called by  queen.read_items, queen.group_acks, queen.pop_one, queen.renew_lease_v2, queen.configure_queue
-- in         p_place: of the object, for the error, such as 'item 3: '
-- raises     QN001. Other unknown members are ignored, as by the HTTP endpoints that existing clients call
create or replace function queen.check_names(p_object jsonb, p_known text[], p_place text)
returns void
language plpgsql immutable
as $$
declare
    r record;
begin
    select k.key, n.name into r
      from jsonb_object_keys(p_object) k(key)
      join unnest(p_known) n(name) on k.key <> all (p_known) and queen.is_near(k.key, n.name)
     limit 1;
    if found then
        raise exception '%unknown member "%"; did you mean "%"?', p_place, r.key, r.name using errcode = 'QN001';
    end if;
end
$$;
