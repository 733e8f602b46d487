"""The rows by topic; `all_rows.py` has them all, in the order of what outranks what. Data."""
