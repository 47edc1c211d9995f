-- Queues with a fixed set of partitions, and who processes which of them (docs/processor.md).
--
-- partitions: their number, 0 when the queue may have any.  They are called 0, 1, 2, ...
alter table queen.queues add column partitions int not null default 0 check (partitions >= 0);

-- One row per (partition, group) that was ever claimed.  Rewritten when somebody claims, renews (every third of the
-- expiry, all partitions of an owner in one statement) or saves a checkpoint; never by pushes, pops and acks.
-- epoch: grows with every change of hands; whoever names an older one is not the owner any more.
-- checkpoint: sequence of the last message that need not be processed again.  null: that is where the group's cursor stands.
create table queen.owners (
    lane          bigint not null references queen.lanes (num) on delete cascade,
    grp           text not null,
    owner         text,                      -- null: nobody, it was given up
    epoch         bigint not null default 0,
    since         timestamptz not null default now(),
    expires_at    timestamptz not null default now(),
    checkpoint    bigint,
    checkpoint_at timestamptz,
    primary key (lane, grp)
) with (fillfactor = 50);
