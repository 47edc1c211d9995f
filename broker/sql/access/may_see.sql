-- queen.may_see: whether the sender of a request may see a queue in a list.
--
-- called by  the functions of lists
-- in         p_args: allowed: patterns of LIKE, [queue, namespace, task, group] each; without it everything may be seen.  Namespace and
--            task are parts of the name: see lib/auth/rules.h
create or replace function queen.may_see(p_args jsonb, p_queue text)
returns boolean
language sql immutable
as $$
    select p_args -> 'allowed' is null
        or exists (select from jsonb_array_elements(p_args -> 'allowed') a
                    where p_queue like (a ->> 0) and split_part(p_queue, '.', 1) like (a ->> 1)
                      and split_part(p_queue, '.', 2) like (a ->> 2))
$$;
