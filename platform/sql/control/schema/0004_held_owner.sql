-- Whose word counts about the lanes of a partition (platform.held_lane): that of its owner in this epoch or a later one.
--
-- Owners are the broker's business; a late word of an earlier owner must not undo what the present one relies on.  partition_id is the
-- broker's: epochs begin anew when the queue was deleted and made again.
create table platform.held_partition (
    queue        text not null,
    partition    text not null,
    partition_id text not null,
    epoch        bigint not null,
    primary key (queue, partition)
);
