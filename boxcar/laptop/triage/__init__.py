"""What a person is told of a failure: its row, what follows, what to type; the page of all rows."""
