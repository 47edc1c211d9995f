-- Places in a lane that are passed over: deleted messages, and messages that a group is not to be given.
--
-- A deleted message stays in its segment as an empty place, so that numbering has no hole.  Ranges of one
-- group do not touch one another; they go with the segments (queen.forget_messages).  A lane that has any is
-- marked, and claimed the careful way: the hot one never looks here.
create table queen.skips (
    lane      bigint not null,
    grp       text not null default '',  -- '': the message is deleted, for everybody
    first_seq bigint not null,
    last_seq  bigint not null check (last_seq >= first_seq),
    primary key (lane, grp, first_seq)
);
create index skips_by_group on queen.skips (grp) where grp <> '';
alter table queen.lanes add column skipping boolean not null default false;

-- Changes of groups (queen.tell_group); null in rows that name lanes.
alter table queen.changes add column queue_name text, add column grp text;
create index changes_a_groups on queen.changes_a (xid) where grp is not null;
create index changes_b_groups on queen.changes_b (xid) where grp is not null;
