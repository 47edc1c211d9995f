-- crm.model_lock(what): the second half of an advisory lock's key; the first is 7642 for all locks of read models.
--   changes       shared, until commit, by every transaction that changed data (crm.changed); exclusive for the moment in which
--                 maintenance of a live table starts or ends.  A refresh also uses it to detect uncommitted changes.
--   a model's name        exclusive, until the end of a refresh: one refresh at a time; released with the connection after a crash
--   a model's name_live   exclusive: one chunk of a backfill at a time
-- called by: the functions of read models and the view crm.mv_refresh_status
-- in: what          out: a number, null for another name          locks: none          raises: nothing
create or replace function crm.model_lock(p_what text) returns int
language sql immutable
as $$
    select case p_what
               when 'changes' then 0
               when 'customer_attributes' then 1
               when 'customer_transactions' then 2
               when 'customer_attributes_live' then 3
               when 'customer_transactions_live' then 4
           end
$$;
