"""What `make demo` shows: an nsqd that is killed under load and loses nothing."""
