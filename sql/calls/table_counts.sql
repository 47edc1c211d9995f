select name, n from queen.table_counts()
