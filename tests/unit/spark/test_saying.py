from __future__ import annotations

import pytest

from penstock.errors import BadOption
from penstock.spark.saying import sentence

NO_COLUMN = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `shp` is none. Did you mean `shop`? "
    "SQLSTATE: 42703; line 1 pos 7;\n'Project ['shp]\n+- SubqueryAlias sales"
)
CALLING = (
    "An error occurred while calling o44.parquet.\n"
    ": org.apache.spark.SparkException: [CANNOT_READ_FILE_FOOTER] Could not read footer for file: /a.json. "
    "SQLSTATE: KD001\n\tat org.apache.spark.errors.X(X.scala:1)\n"
)
CAUSED = (
    "[TASK_WRITE_FAILED] Task failed while writing rows to file:/disk/files. SQLSTATE: 58030\n\nJVM stacktrace:\n"
    "org.apache.spark.sql.streaming.StreamingQueryException: [TASK_WRITE_FAILED] Task failed while writing rows.\n"
    "\tat org.apache.spark.X(X.scala:1)\n"
    "Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.\n"
    "Caused by: java.io.IOException: No space left on device\n\tat java.base/java.io.X(X.java:1)\n"
)
ASIDE = (
    "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nsk. SQLSTATE: 42K02\n\nJVM stacktrace:\n"
    "org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: nsk.\n"
    "Caused by: java.lang.ClassNotFoundException: nsk.DefaultSource\n"
)
RAISED = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: [UDF] An exception was thrown from the Python worker: "
    "Traceback (most recent call last):\n"
    '  File "mine.py", line 6, in <lambda>\n    return sales.select(udf(lambda x: 1 / 0))\n                    ~~^~~\n'
    "ZeroDivisionError: division by zero\n SQLSTATE: 38000\n"
)
OURS = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):\n"
    '  File "x.py", line 1, in f\n'
    "penstock.errors.DataLost: topic t on http://a:4151: offsets 5 to 9 are gone (failOnDataLoss)\n SQLSTATE: 38000\n"
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(BadOption("--to: it has to be given"), "--to: it has to be given", id="ours"),
        pytest.param(
            Exception(NO_COLUMN),
            "A column with name `shp` is none. Did you mean `shop`? line 1 pos 7",
            id="sql",
        ),
        pytest.param(Exception(CALLING), "Could not read footer for file: /a.json.", id="java"),
        pytest.param(Exception(ASIDE), "Failed to find the data source: nsk.", id="a-cause-that-says-less"),
        pytest.param(Exception(CAUSED), "No space left on device", id="cause"),
        pytest.param(
            Exception(OURS), "topic t on http://a:4151: offsets 5 to 9 are gone (failOnDataLoss)", id="ours-in-a-worker"
        ),
        pytest.param(Exception(RAISED), "ZeroDivisionError: division by zero", id="the-users-function"),
        pytest.param(ConnectionError(), "ConnectionError", id="nothing"),
    ],
)
def test_what_went_wrong_is_one_sentence(error: Exception, expected: str) -> None:
    assert sentence(error) == expected


def test_a_cause_that_pyspark_does_not_show_is_found() -> None:
    # given what PySpark makes of a query that failed: the stack of its cause is in the exception, and not in its text
    error, cause = Exception("[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030"), Exception()
    error._cause = cause  # type: ignore[attr-defined]
    cause._stackTrace = CAUSED  # type: ignore[attr-defined]
    assert sentence(error) == "No space left on device"
    cause._stackTrace = "java.io.IOException: Quota exceeded\n\tat X"  # type: ignore[attr-defined]
    assert sentence(error) == "Quota exceeded"
