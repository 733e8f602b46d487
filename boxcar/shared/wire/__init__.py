"""What travels between two machines: questions, answers, webhooks."""
