"""schemathesis reads the OpenAPI document, and asks what it allows and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.daemon import Nsqd
from tests.integration.http_client import Http

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method"
)
NAMES = {"topic": ["one", "two#ephemeral"], "channel": ["c", "d#ephemeral"], "reader": ["q"]}


def about_few_topics(document: dict[str, Any]) -> dict[str, Any]:
    """The same, with names that are mostly of the same few topics: else hardly anything would be there."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if names := NAMES.get(parameter["name"]):
                    parameter["schema"] = {"anyOf": [{"enum": names}, {"enum": names}, parameter["schema"]]}
    return document


@pytest.mark.slow
def test_for_a_minute_every_answer_is_one_that_the_document_tells_of(tmp_path: Path) -> None:
    # given a node, and its own word for what it answers
    data = tmp_path / "data"
    data.mkdir()
    nsqd = Nsqd(data)
    web = Http(nsqd.http)
    schema = tmp_path / "openapi.json"
    schema.write_text(json.dumps(about_few_topics(web.get("/openapi.json").json())))
    web.close()
    # when schemathesis asks for a minute
    program, url = str(Path(sys.executable).with_name("schemathesis")), f"http://127.0.0.1:{nsqd.http}"
    command = [program, "run", str(schema), "--url", url]
    command += ["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-time", "60", "--no-color"]
    command += ["--max-examples", "400", "--generation-database", "none", "--warnings", "off"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    # then no answer was another, and nothing went wrong that nobody meant to
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
    assert "Fuzzing" in found.stdout
    assert nsqd.stop() == 0
    nsqd.assert_calm()
    assert not [line for line in nsqd.log if " ERROR: HTTP: " in line]
