"""`penstock up`: an nsqlookupd and some nsqd as one foreground command."""
