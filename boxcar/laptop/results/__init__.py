"""Results on the laptop: brought, compared, loaded, judged."""
