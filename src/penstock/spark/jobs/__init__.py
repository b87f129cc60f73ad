"""Jobs on Spark that are a command each: what they ask of a session. Knows no terminal and no signal."""
