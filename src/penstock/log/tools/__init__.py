"""What people do to logs with no node running over them, or beside one: verify, dump, salvage, repair, back up."""
