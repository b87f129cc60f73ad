"""Who may do what: tokens from a file, and NSQ's auth servers. Knows no connection and no route."""
