-- queen.update_subscription: POST /api/v1/consumer-groups/:group/subscription.
--
-- needs: param_time, start_cursor, latest_state, notify_group
-- called by  broker/src/api/admin/groups.c
-- in         p_args.group; body.subscriptionTimestamp
-- out        {"success","consumerGroup","newTimestamp","rowsUpdated"}: number of recorded subscriptions that were changed
-- effects    partitions of which the group has received nothing yet, and on which it was not moved, start at the new time;
--            other cursors stay. Removes the group's watermarks
-- locks      the consumers that move, in num order
-- raises     QN001 if the timestamp is missing or invalid
create or replace function queen.update_subscription(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_time  timestamptz := queen.param_time(p_args -> 'body', 'subscriptionTimestamp', null);
    v_group text := p_args ->> 'group';
    v_rows  bigint;
begin
    if v_time is null then
        raise exception using errcode = 'QN001', message = 'subscriptionTimestamp must be given';
    end if;
    update queen.consumer_groups_metadata set subscription_timestamp = v_time where consumer_group = v_group;
    get diagnostics v_rows = row_count;
    delete from queen.consumer_watermarks where consumer_group = v_group;
    if v_rows > 0 then
        perform c.num from queen.consumers c where c.grp = v_group order by c.num for no key update;
        -- Only consumers in their first version, which no pop and no seek has changed.
        insert into queen.consumer_states (consumer, ver, cursor_seq, slot)
        select c.num, st.ver + 1, n.cursor_seq, r.active
          from queen.consumers c
          cross join lateral queen.latest_state(c.num) st
          cross join lateral (select queen.start_cursor(c.lane, c.grp) as cursor_seq) n
          cross join queen.rotation r
         where c.grp = v_group and st.ver = 1 and n.cursor_seq <> st.cursor_seq;
        perform queen.notify_group('', v_group);
    end if;
    return json_build_object('success', true, 'consumerGroup', v_group,
                             'newTimestamp', p_args -> 'body' ->> 'subscriptionTimestamp', 'rowsUpdated', v_rows);
end
$$;
