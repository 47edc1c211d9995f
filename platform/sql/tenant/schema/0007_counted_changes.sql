-- Whether a view is stale is decided by counting changes.  It was decided by the time of the last change, and a clock that is set back, or two
-- transactions that read the clock in one order and note it in the other, hid changes.  The sequences of 0002 stay: they say when.
create sequence crm.customer_attributes_changes minvalue 0 start 0;
create sequence crm.customer_transactions_changes minvalue 0 start 0;
-- The first call returns the start: last_value, by which the changes are counted, stays as it is.
do $$ begin perform nextval('crm.customer_attributes_changes'), nextval('crm.customer_transactions_changes'); end $$;
-- The marks of views were times.  All views are stale once.
update crm.read_model set view_mark = -1, next_view_mark = -1;
