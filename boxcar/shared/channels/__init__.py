"""Chat services as endpoints of news: what each is sent, and what it answers when it took it."""
