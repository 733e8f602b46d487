"""What lines are made of: spans, columns, names that shorten, signs, bars, and their colours."""
