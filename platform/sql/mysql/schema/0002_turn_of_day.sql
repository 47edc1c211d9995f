-- Nothing to change here: the procedure ingest does not go on without the lock under which the day is turned.  The number keeps older programs that
-- restart from bringing their own procedures back.
do 0;
