"""Faults on purpose against real processes, and a checker that decides from what clients saw.

    python -m tests.torture --minutes 5 --seed 1 --only kill,freeze      (or `make torture MINUTES=5`)

An episode has a node with options of its own, producers, consumers and nemeses. All that clients and nemeses do goes
into a `History`; when all is well again and the channels are drained, `checker.check` looks at that history alone.
"""
