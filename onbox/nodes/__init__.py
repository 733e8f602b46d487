"""Cells over several pods of Kubernetes: the lead in the agent's pod, a follower in each other."""
