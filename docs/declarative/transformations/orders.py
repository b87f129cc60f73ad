"""From the topic `orders` to a table, and on to the topic `large`: each message once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
NSQD = spark.conf.get("orders.nsqd")


@dp.table
def orders() -> DataFrame:
    """Each message of the topic, its body parsed."""
    messages = spark.readStream.format("nsq").option("nsqd", NSQD).option("topic", "orders")
    messages = messages.option("startingOffsets", "earliest").option("bodyAs", "json")
    parsed = messages.option("schema", "user STRING, amount DOUBLE").load()
    return parsed.selectExpr("node", "offset", "timestamp", "body.user", "body.amount")


dp.create_sink("large", "nsq", {"nsqd": NSQD, "topic": "large", "bodyAs": "json"})


@dp.append_flow(target="large")
def large() -> DataFrame:
    """What is published again."""
    return spark.readStream.table("orders").where("amount > 50").select("user", "amount")
