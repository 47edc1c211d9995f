-- Encryption at rest: a lane knows whether its queue has encryptionEnabled, so that a push that comes in clear is
-- noticed under the lock it takes anyway (queen.push_segments).  Kept by the trigger queen.spread_options.
alter table queen.lanes add column sealed boolean not null default false;
update queen.lanes l set sealed = true
  from queen.queues q
 where q.id = l.queue_id and q.encryption_enabled;
