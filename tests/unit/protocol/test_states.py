"""The states of a connection are a table, and the parser keeps to it."""

from __future__ import annotations

import pytest

from penstock.errors import ClientError
from penstock.protocol.v2 import ALLOWED_IN, LEADS_TO, State, allows
from tests.unit.protocol.conversation import ID, greeted, mpub, pub, sized

EVERYWHERE = {"PUB": pub("t", b"m"), "MPUB": mpub("t", [b"m"]), "DPUB": b"DPUB t 1\n" + sized(b"m"), "NOP": b"NOP\n"}
SOMEWHERE = {
    "IDENTIFY": b"IDENTIFY\n" + sized(b"{}"),
    "AUTH": b"AUTH\n" + sized(b"secret"),
    "SUB": b"SUB t c\n",
    "RDY": b"RDY 1\n",
    "FIN": b"FIN " + ID + b"\n",
    "REQ": b"REQ " + ID + b" 0\n",
    "TOUCH": b"TOUCH " + ID + b"\n",
    "CLS": b"CLS\n",
}
SAID = EVERYWHERE | SOMEWHERE


def test_the_table_names_every_command_that_is_not_allowed_everywhere() -> None:
    assert ALLOWED_IN.keys() == SOMEWHERE.keys()
    assert all(allows(state, command) for state in State for command in EVERYWHERE)


@pytest.mark.parametrize("command", SAID)
@pytest.mark.parametrize("state", State)
def test_a_command_is_heard_in_the_states_of_the_table_and_in_no_other(state: State, command: str) -> None:
    # given a connection in a state
    parser = greeted(state)
    said = bytearray(SAID[command])
    if allows(state, command):
        # when a command is allowed there, then it is taken
        parser.next(said, 0, len(said))
        assert parser.at == len(said)
    else:
        # else it is refused by its first line
        with pytest.raises(ClientError) as error:
            parser.next(said, 0, said.index(b"\n") + 1)
        assert error.value.answer == b"E_INVALID cannot %s in current state" % command.encode()


@pytest.mark.parametrize("state", State)
def test_only_sub_and_cls_lead_to_another_state(state: State) -> None:
    assert {command: state.after(command) for command in SAID} == {
        command: {"SUB": State.SUBSCRIBED, "CLS": State.CLOSING}.get(command, state) for command in SAID
    }
    assert LEADS_TO.keys() == {"SUB", "CLS"}


def test_the_numbers_of_the_states_are_those_that_nsqd_shows() -> None:
    assert [(state.name, int(state)) for state in State] == [("INIT", 0), ("SUBSCRIBED", 3), ("CLOSING", 4)]
