"""The rows by topic; `known.py` has them all, in the order of what outranks what. Data."""
