-- Dead letters by the time of their message: messages?status=dead_letter reads as many as it shows.
create index dead_letter_queue_created on queen.dead_letter_queue (original_created_at desc, lane, seq desc);
