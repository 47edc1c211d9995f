-- ingest: applies the events of one batch, each once, all or none, together with the checkpoints: crm.ingest of PostgreSQL
-- tenants.
--
-- called by: platform/src/ingest/write_my.c
-- in:  queue; marks: [{"name": partition, "position": microseconds, "stamp": ..., "seen": ...}], as in crm.ingest; events,
-- deleted: lists of ids; rows for each table, null: none
-- out: ids of events that were applied earlier, in which case nothing changed; no row: everything was applied
-- locks: rows of ingest_checkpoint, in order, so that it waits for a late writer of the same events; rows of applied_day
--        and the ids in applied_event, shared; rows of the tables
delimiter //
create or replace procedure ingest(p_queue varchar(255) character set utf8mb4 collate utf8mb4_bin, p_marks json, p_events json, p_deleted json,
                                   p_customers json, p_patches json, p_subscriptions json, p_wallets json, p_adjustments json, p_packages json, p_transactions json, p_visits json, p_purchases json)
begin
    declare v_today date default utc_date(); -- read once: the day may change before the next statement
    -- The slots rotate, one step on each day on which events are applied: see crm.turn_applied_day of PostgreSQL tenants.
    declare v_slot tinyint default (select slot from applied_day order by day desc, slot desc limit 1);
    -- Lock names are global to the server, so the name contains the database.
    declare v_lock varchar(64) default concat('queen.applied_day.', md5(database()));
    declare v_day date default (select day from applied_day where slot = v_slot);
    declare exit handler for sqlexception
    begin
        rollback;
        do release_lock(v_lock); -- if this session holds it: the session continues
        resignal;
    end;

    -- Outside of the transaction, because it would commit it; once a day, by one of the sessions that see the new day.
    if v_day < v_today then
        if coalesce(get_lock(v_lock, 2), 0) = 0 then
            signal sqlstate 'HY000' set mysql_errno = 1205, message_text = 'waited too long for the turn of the day';
        end if;
        set v_slot = (select slot from applied_day order by day desc, slot desc limit 1);
        if (select day from applied_day where slot = v_slot) < v_today then
            set v_slot = mod(v_slot + 1, 4);
            execute immediate concat('alter table applied_event truncate partition s', v_slot);
            update applied_day set day = v_today where slot = v_slot;
        end if;
        do release_lock(v_lock);
    end if;

    -- Outside of the transaction, because its snapshot must be newer than its locks.
    if exists (select 1
                 from json_table(p_marks, '$[*]' columns (name varchar(100) character set utf8mb4 collate utf8mb4_bin path '$.name', seen bigint path '$.seen')) m
                 left join ingest_checkpoint c on c.queue = p_queue and c.`partition` = m.name
                where m.seen > 0 and (c.at is null or c.at < timestampadd(microsecond, m.seen, '1970-01-01'))) then
        signal sqlstate 'QT001' set message_text = 'the database went back behind its checkpoint: it was restored, or is a standby that lagged';
    end if;

    start transaction;
    insert into ingest_checkpoint (queue, `partition`, position, at)
    select p_queue, m.name, m.position, timestampadd(microsecond, m.stamp, '1970-01-01')
      from json_table(p_marks, '$[*]' columns (name varchar(100) character set utf8mb4 collate utf8mb4_bin path '$.name', position bigint path '$.position', stamp bigint path '$.stamp')) m
     order by m.name
        on duplicate key update position = greatest(ingest_checkpoint.position, values(position)), at = greatest(ingest_checkpoint.at, values(at)); -- a former owner may write late
    -- Look up each id in each slot, with locks: of two transactions that apply the same event, even in different slots,
    -- one waits for the other or is ended by a deadlock and retried.
    if exists (select 1 from json_table(p_events, '$[*]' columns (id char(36) character set ascii path '$')) e
                 straight_join applied_day d
                 straight_join applied_event a on a.slot = d.slot and a.id = e.id
                 lock in share mode) then
        rollback;
        select distinct a.id from json_table(p_events, '$[*]' columns (id char(36) character set ascii path '$')) e
          straight_join applied_day d
          straight_join applied_event a on a.slot = d.slot and a.id = e.id;
    else
        insert into applied_event (slot, id)
        select v_slot, e.id from json_table(p_events, '$[*]' columns (id char(36) character set ascii path '$')) e;
        call delete_customers(p_deleted);
        call write_accounts(p_customers, p_subscriptions, p_wallets, p_adjustments, p_packages);
        call patch_customers(p_patches);
        call write_logs(p_transactions, p_visits, p_purchases);
        commit;
    end if;
end
//
