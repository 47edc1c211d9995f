-- Is the database there?  By src/tenant/link.c.
select 1
