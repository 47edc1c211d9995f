select queen.forget_deleted()
