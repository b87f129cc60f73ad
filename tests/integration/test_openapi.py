"""schemathesis reads the OpenAPI document, and asks what it allows and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.integration.daemon import Nsqd

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method"
)
NAMES: dict[str, list[object]] = {
    "topic": ["one", "two#ephemeral"],
    "channel": ["c", "d#ephemeral"],
    "reader": ["q"],
    "producer": ["p", "r"],
    "sequence": [1, 2, 3],
    "digest": ["00" * 8],
}
TOKEN = "9fPq1bVd6cXw3e0aLk"


def about_few_topics(document: dict[str, Any]) -> dict[str, Any]:
    """The same, with names that are mostly of the same few things: else hardly anything would be there."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if names := NAMES.get(parameter["name"]):
                    parameter["schema"] = {"anyOf": [{"enum": names}, {"enum": names}, parameter["schema"]]}
    return document


@pytest.mark.slow
@pytest.mark.parametrize("with_token", [False, True], ids=["open", "with-tokens"])
def test_for_a_minute_every_answer_is_one_that_the_document_tells_of(tmp_path: Path, with_token: bool) -> None:
    # given a node, with or without tokens, and its own word for what it answers
    data, tokens = tmp_path / "data", tmp_path / "tokens"
    data.mkdir()
    tokens.write_text(f"ops {TOKEN} *:*\n")
    nsqd = Nsqd(data, *([f"--http-token-file={tokens}"] if with_token else []))
    program, url = str(Path(sys.executable).with_name("schemathesis")), f"http://127.0.0.1:{nsqd.http}"
    schema = tmp_path / "openapi.json"
    ask = Request(f"{url}/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})
    with urlopen(ask, timeout=10) as answer:
        schema.write_text(json.dumps(about_few_topics(json.load(answer))))
    # when schemathesis asks for a minute
    command = [program, "run", str(schema), "--url", url]
    command += ["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-time", "60", "--no-color"]
    if with_token:
        command += ["--header", f"Authorization: Bearer {TOKEN}"]
    command += ["--max-examples", "400", "--generation-database", "none", "--warnings", "off"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    # then no answer was another, and nothing went wrong that nobody meant to
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
    assert "Fuzzing" in found.stdout
    assert nsqd.stop() == 0
    nsqd.assert_calm()
    assert not [line for line in nsqd.log if " ERROR: HTTP: " in line]
