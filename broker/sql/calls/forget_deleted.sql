-- returns: more bool?
select queen.forget_deleted()
