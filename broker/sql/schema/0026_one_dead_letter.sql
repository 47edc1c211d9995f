-- A message is at most once among the dead letters of a group.
--
-- Repeated acknowledgements used to add a row each, and a redrive sent the message once for each row.
delete from queen.dead_letter_queue d
 where exists (select from queen.dead_letter_queue k
                where k.message_id = d.message_id and k.consumer_group = d.consumer_group
                  and (k.failed_at, k.id) > (d.failed_at, d.id));
drop index queen.dead_letter_queue_message;
create unique index dead_letter_queue_message on queen.dead_letter_queue (message_id, consumer_group);
