-- crm.ingest: applies the events of one batch: each once, all or none, together with the checkpoints.
--
-- If an event was applied earlier, the call changes nothing and returns its id: the caller (platform/src/ingest/fold.c) has
-- merged rows, so it must omit the event and call again.  That is rare: events are repeated only after a crash or when a
-- producer sends them twice.
--
-- The settings also apply to the functions that it calls.  Plans are cached per connection and use indexes: planning every
-- call would cost more than the work, and plans made while a tenant is new would scan whole tables until the next analyze.
-- called by: platform/src/ingest/write_pg.c
-- in:  queue, partitions, positions    source of the events, and the last position; position 0 keeps a checkpoint
--      stamp                           microseconds since 1970 by the caller's clock, recorded as the time of the
--      checkpoints
--      seen                            per partition, the last stamp that the caller saw committed; 0: none
--      events                          their ids, each once
--      deleted                         customers to delete before anything is written; may be empty
--      customers ... purchases         rows for each table, null: none; see the functions of these names
--      of_customers ... of_purchases   customers of these rows; empty: none
-- out: ids of events that were applied earlier; no row: everything was applied
-- locks: applied_day once a day; advisory locks of the partitions, in order, so that it waits for a late writer of the same
--        events; rows of the tables; locks of crm.changed_attributes, then those of crm.changed_transactions
-- raises: QT001 when a checkpoint is older than seen, or missing: the database was restored, or is a standby that lagged;
--         22xxx, 23xxx for data that the tables refuse
create or replace function crm.ingest(p_queue text, p_partitions text[], p_positions bigint[], p_stamp bigint, p_seen bigint[],
                                        p_events uuid[], p_deleted uuid[],
                                        p_customers jsonb, p_patches jsonb, p_subscriptions jsonb, p_wallets jsonb, p_adjustments jsonb, p_packages jsonb,
                                        p_transactions jsonb, p_visits jsonb, p_purchases jsonb,
                                        p_of_customers uuid[], p_of_patches uuid[], p_of_subscriptions uuid[], p_of_wallets uuid[], p_of_adjustments uuid[],
                                        p_of_packages uuid[], p_of_transactions uuid[], p_of_visits uuid[], p_of_purchases uuid[])
returns table (duplicate uuid)
language plpgsql
set search_path = crm, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    today smallint := crm.turn_applied_day();
    come_or_gone uuid[] := p_deleted; -- and new customers: their rows in the model of transactions are computed whole
    -- customers that lost an account to another one
    moved_subscriptions uuid[] := '{}';
    moved_wallets uuid[] := '{}';
    moved_packages uuid[] := '{}';
    done text; -- result of calls, which are assignments because `perform` would set up a query for each
begin
    if cardinality(p_partitions) = 1 then
        done := pg_advisory_xact_lock(hashtextextended(p_queue || '/' || p_partitions[1], 7643));
    else
        perform pg_advisory_xact_lock(l.key)
           from (select hashtextextended(p_queue || '/' || name, 7643) as key from unnest(p_partitions) name order by 1) l;
    end if;
    if exists (select from unnest(p_partitions, p_seen) s(name, seen)
                 left join crm.ingest_checkpoint c on c.queue = p_queue and c.partition = s.name
                where s.seen > 0 and (c.at is null or c.at < timestamptz 'epoch' + s.seen * interval '1 microsecond')) then
        raise exception 'the database went back behind its checkpoint: it was restored, or is a standby that lagged' using errcode = 'QT001';
    end if;
    -- One slot at a time: the index starts with the slot and does not help a search of the whole table.
    return query select e.id from crm.applied_event_0 e where e.slot = 0 and e.id = any (p_events)
       union all select e.id from crm.applied_event_1 e where e.slot = 1 and e.id = any (p_events)
       union all select e.id from crm.applied_event_2 e where e.slot = 2 and e.id = any (p_events)
       union all select e.id from crm.applied_event_3 e where e.slot = 3 and e.id = any (p_events);
    if found then
        return;
    end if;
    -- Insert into the slot itself: routing through the parent table costs more than the row.
    if today = 0 then
        insert into crm.applied_event_0 (slot, id) select 0, id from unnest(p_events) id;
    elsif today = 1 then
        insert into crm.applied_event_1 (slot, id) select 1, id from unnest(p_events) id;
    elsif today = 2 then
        insert into crm.applied_event_2 (slot, id) select 2, id from unnest(p_events) id;
    else
        insert into crm.applied_event_3 (slot, id) select 3, id from unnest(p_events) id;
    end if;
    insert into crm.ingest_checkpoint as c (queue, partition, position, at)
    select p_queue, s.name, s.position, timestamptz 'epoch' + p_stamp * interval '1 microsecond' from unnest(p_partitions, p_positions) s(name, position)
        on conflict (queue, partition) do update
       set position = greatest(c.position, excluded.position), at = greatest(c.at, excluded.at); -- a former owner may write late

    if cardinality(p_deleted) > 0 then
        done := crm.delete_customers(p_deleted);
    end if;
    if p_customers is not null then
        come_or_gone := come_or_gone || crm.write_customers(p_customers);
    end if;
    if p_patches is not null then
        come_or_gone := come_or_gone || crm.patch_customers(p_patches);
    end if;
    if p_subscriptions is not null then
        moved_subscriptions := crm.write_subscriptions(p_subscriptions);
    end if;
    if p_wallets is not null then
        moved_wallets := crm.write_wallets(p_wallets);
    end if;
    if p_adjustments is not null then
        moved_wallets := moved_wallets || crm.adjust_wallets(p_adjustments);
    end if;
    if p_packages is not null then
        moved_packages := crm.write_packages(p_packages);
    end if;
    if p_transactions is not null then
        done := crm.write_transactions(p_transactions);
    end if;
    if p_visits is not null then
        done := crm.write_visits(p_visits);
    end if;
    if p_purchases is not null then
        done := crm.write_purchases(p_purchases);
    end if;

    if cardinality(p_deleted) > 0 or p_customers is not null or p_patches is not null or p_subscriptions is not null or p_wallets is not null
       or p_adjustments is not null or p_packages is not null then
        done := crm.changed_attributes(p_deleted, p_of_customers || p_of_patches, p_of_subscriptions || moved_subscriptions,
                                       p_of_wallets || p_of_adjustments || moved_wallets, p_of_packages || moved_packages);
    end if;
    if p_subscriptions is not null then
        come_or_gone := come_or_gone || crm.stale_copies(p_of_subscriptions || moved_subscriptions);
    end if;
    if cardinality(come_or_gone) > 0 or p_transactions is not null or p_visits is not null or p_purchases is not null then
        done := crm.changed_transactions(come_or_gone, p_of_transactions, p_of_visits, p_of_purchases);
    end if;
end
$$;
