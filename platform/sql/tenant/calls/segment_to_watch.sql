-- A watched segment.  $1: id.  Nothing: it is gone, or nobody watches it any more.
-- The last column: a look that waited behind another is not worth a second one.
select s.filter::text, s.name, s.watch_queue,
       coalesce(s.evaluated_at < clock_timestamp() - make_interval(secs => s.watch_every_s * 0.5), true)
from crm.segment s
where s.id = $1 and s.watch_every_s is not null
