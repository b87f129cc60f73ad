"""The client: publish to NSQ and consume from it, over asyncio; and a blocking producer.

async with Producer("127.0.0.1:4150") as producer:
    await producer.publish("events", b"hello")
"""

from penstock.client.consumer import Consumer
from penstock.client.message import Message
from penstock.client.producer import Producer
from penstock.client.sync import SyncProducer

__all__ = ["Consumer", "Message", "Producer", "SyncProducer"]
