"""Topics of single verbs; their ids are as those of the topics above."""
