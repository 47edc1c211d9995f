-- Which read models a segment may be asked of, and how old the views are.  One row per model, attributes first.
select r.model, r.mode, r.live_version is not null, r.view_version is not null, r.view_as_of,
       case when crm.model_mark(r.model) <= r.view_mark then 0
            else greatest(0, extract(epoch from clock_timestamp() - r.view_as_of) * 1000) end::bigint,
       clock_timestamp()
from crm.read_model r
order by r.model
