"""What may lie between a socket and who talks over it: TLS, snappy, deflate. Knows no protocol above it."""

from penstock.stream.deflate import Deflate
from penstock.stream.layer import Layer, Layers
from penstock.stream.snappy import Snappy
from penstock.stream.tls import Tls, client_tls, server_tls

__all__ = ["Deflate", "Layer", "Layers", "Snappy", "Tls", "client_tls", "server_tls"]
