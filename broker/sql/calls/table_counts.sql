-- returns: name text, n int8
select name, n from queen.table_counts()
