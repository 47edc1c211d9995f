-- crm.ingest: applies the events of one batch: each once, all or none, together with the checkpoints.
--
-- An event that was applied before makes the whole call return without a change, naming it: rows have been folded together by the
-- caller (src/ingest/fold.c), who then leaves the event out and asks again.  That is rare: events come again only after a crash or
-- when a producer sends them twice.
-- called by: src/ingest/write_pg.c
-- in:  queue, partitions, positions    where the events came from and how far they go
--      events                          their ids, each once
--      deleted                         customers whose rows go, before anything is written; may be empty
--      customers ... purchases         rows for each table, null: none; see the functions of their names
--      touched                         the customers of all events
-- out: ids of events that were applied before; none: all of it is done
-- locks: applied_day once a day; advisory locks of the partitions, in order, so that a late writer of the same events is waited for;
--        rows of the tables; what crm.changed takes
-- raises: 22xxx, 23xxx for data that the tables do not take
create or replace function crm.ingest(p_queue text, p_partitions text[], p_positions bigint[], p_events uuid[], p_deleted uuid[],
                                      p_customers jsonb, p_subscriptions jsonb, p_wallets jsonb, p_adjustments jsonb, p_packages jsonb,
                                      p_transactions jsonb, p_visits jsonb, p_purchases jsonb, p_touched uuid[])
returns table (duplicate uuid)
language plpgsql
as $$
declare
    today smallint := crm.turn_applied_day();
begin
    perform pg_advisory_xact_lock(l.key)
       from (select hashtextextended(p_queue || '/' || name, 7643) as key from unnest(p_partitions) name order by 1) l;
    return query select distinct e.id from crm.applied_event e where e.id = any (p_events);
    if found then
        return;
    end if;
    insert into crm.applied_event (slice, id) select today, id from unnest(p_events) id;
    insert into crm.ingest_checkpoint as c (queue, partition, position, at)
    select p_queue, s.name, s.position, clock_timestamp() from unnest(p_partitions, p_positions) s(name, position)
        on conflict (queue, partition) do update
       set position = greatest(c.position, excluded.position), at = excluded.at;

    if cardinality(p_deleted) > 0 then
        perform crm.delete_customers(p_deleted);
    end if;
    if p_customers is not null then
        perform crm.write_customers(p_customers);
    end if;
    if p_subscriptions is not null then
        perform crm.write_subscriptions(p_subscriptions);
    end if;
    if p_wallets is not null then
        perform crm.write_wallets(p_wallets);
    end if;
    if p_adjustments is not null then
        perform crm.adjust_wallets(p_adjustments);
    end if;
    if p_packages is not null then
        perform crm.write_packages(p_packages);
    end if;
    if p_transactions is not null then
        perform crm.write_transactions(p_transactions);
    end if;
    if p_visits is not null then
        perform crm.write_visits(p_visits);
    end if;
    if p_purchases is not null then
        perform crm.write_purchases(p_purchases);
    end if;
    perform crm.changed(p_touched,
                        cardinality(p_deleted) > 0 or p_customers is not null or p_subscriptions is not null
                        or p_wallets is not null or p_adjustments is not null or p_packages is not null,
                        cardinality(p_deleted) > 0 or p_transactions is not null or p_visits is not null
                        or p_purchases is not null);
end
$$;
