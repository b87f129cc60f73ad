"""What the daemons have in common: log lines, signals, listening, a look inside. Knows no NSQ."""
