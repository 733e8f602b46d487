"""The board of a run as a page of HTML: made of one look, and served on 127.0.0.1 or written."""
