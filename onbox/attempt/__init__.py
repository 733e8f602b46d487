"""One attempt: what run_one.sh becomes, from the lock on its cell to the record of its end."""
