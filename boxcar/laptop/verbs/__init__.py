"""One file for each verb. Only here are words said to a person."""
