"""What `make demo` shows: three nodes, one killed under load, archives, SQL, a replay; every message is counted."""
