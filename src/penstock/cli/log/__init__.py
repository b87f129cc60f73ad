"""`penstock log`: looking into logs, mending and copying them. What they do is in penstock.log.tools; this shows it."""
