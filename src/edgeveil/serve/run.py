"""What starts a service: all its parts under one name, which is loaded only if they are wanted."""

from edgeveil.serve.curator import curator_app, curator_key
from edgeveil.serve.guards import Metrics
from edgeveil.serve.making import Making, Offer
from edgeveil.serve.member import member_app
from edgeveil.serve.server import Place, serve
from edgeveil.serve.tokens import Tokens, new_key, sign

__all__ = [
    "Making",
    "Metrics",
    "Offer",
    "Place",
    "Tokens",
    "curator_app",
    "curator_key",
    "member_app",
    "new_key",
    "serve",
    "sign",
]
