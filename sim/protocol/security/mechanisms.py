"""The exchanges of SASL's mechanisms, at both ends: tokens in, tokens out.

With a delegation token a client of SCRAM has its id for a user, its HMAC for a password, and the
extension ``tokenauth``; it is authenticated as the token's owner (KIP-48).

Source: ``PlainSaslServer``, ``ScramSaslServer``, ``ScramSaslClient``, ``ScramExtensions``;
RFC 4616, RFC 5802.
"""

from abc import abstractmethod
from collections.abc import Mapping

from sim.protocol.metadata.records import DelegationTokenRecord
from sim.protocol.security import scram
from sim.protocol.security.config import PLAIN, ClientSecurity
from sim.protocol.security.tokens import TokenCache, user_of


class Failed(Exception):  # noqa: N818 - an outcome of an exchange, not a defect of the program
    """The exchange ends: the credentials are not those of the user."""


class SaslServer:
    """A server's part of one exchange."""

    def __init__(self) -> None:
        self.user = ""
        """The authorization id, once the exchange is complete."""
        self.is_complete = False
        self.token: DelegationTokenRecord | None = None
        """Delegation token that the client has named, as it was then."""

    @abstractmethod
    def answer(self, token: bytes) -> bytes:
        """Answers a client's token.

        Raises:
            Failed: If the credentials are wrong.
        """


class PlainServer(SaslServer):
    """User and password in one token."""

    def __init__(self, users: Mapping[str, str]) -> None:
        super().__init__()
        self._users = users

    def answer(self, token: bytes) -> bytes:
        """Compares the password with the user's."""
        _, user, password = token.decode().split("\0")
        if self._users.get(user) != password:
            raise Failed
        self.user, self.is_complete = user, True
        return b""


class ScramServer(SaslServer):
    """Challenge and proof; a user that does not exist fails at the first token.

    Args:
        mechanism: One of SCRAM's.
        users: Passwords of users, of which only the credentials are used.
        nonce: The server's part of the nonce.
        tokens: Delegation tokens that the broker knows.
    """

    def __init__(
        self, mechanism: str, users: Mapping[str, str], nonce: str, tokens: TokenCache
    ) -> None:
        super().__init__()
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._nonce = nonce
        self._name = ""
        self._credential: scram.ScramCredential | None = None
        self._spoken = b""

    def answer(self, token: bytes) -> bytes:
        """Answers the client's first message with a challenge, its final one with a signature."""
        if self._credential is None:
            return self._challenge(token)
        return self._verify(token, self._credential)

    def _challenge(self, token: bytes) -> bytes:
        bare = token.partition(b",,")[2]
        said = scram.attributes(bare)
        name = self._name = scram.unescaped(said["n"])
        if said.get("tokenauth") == "true":
            password = self._password_of_token(name)
        else:
            password = self._users.get(name)
        if password is None:
            raise Failed
        self._credential = scram.credential(self._mechanism, name, password)
        self._nonce = said["r"] + self._nonce
        salt = scram.to_text(self._credential.salt)
        first = f"r={self._nonce},s={salt},i={scram.ITERATIONS}".encode()
        self._spoken = bare + b"," + first
        return first

    def _password_of_token(self, name: str) -> str | None:
        """Password of a delegation token, whose owner is the user; ``None``: it is not known."""
        known = self._tokens.of(name)
        if known is None:
            return None
        self.token, self._name = known, user_of(known.owner)
        return self._tokens.password(name)

    def _verify(self, token: bytes, kept: scram.ScramCredential) -> bytes:
        unproved, _, proof = token.rpartition(b",p=")
        spoken = self._spoken + b"," + unproved
        signature = scram.sign(self._mechanism, kept.stored_key, spoken)
        client_key = scram.xor(signature, scram.from_text(proof.decode()))
        is_right_nonce = scram.attributes(unproved)["r"] == self._nonce
        if not is_right_nonce or scram.hashed(self._mechanism, client_key) != kept.stored_key:
            raise Failed
        self.user, self.is_complete = self._name, True
        signed = scram.sign(self._mechanism, kept.server_key, spoken)
        return b"v=" + scram.to_text(signed).encode()


def server_of(
    mechanism: str, users: Mapping[str, str], nonce: str, tokens: TokenCache
) -> SaslServer:
    """A server's part of an exchange of a mechanism that is enabled."""
    if mechanism == PLAIN:
        return PlainServer(users)
    return ScramServer(mechanism, users, nonce, tokens)


class SaslClient:
    """A client's part of one exchange."""

    @abstractmethod
    def first(self) -> bytes:
        """The client's first token."""

    @abstractmethod
    def answer(self, token: bytes) -> bytes | None:
        """Answers a server's token; ``None``: the exchange is complete.

        Raises:
            Failed: If the server does not know the credentials either.
        """


class PlainClient(SaslClient):
    """User and password in one token."""

    def __init__(self, credentials: ClientSecurity) -> None:
        self._credentials = credentials

    def first(self) -> bytes:
        """User and password."""
        return f"\0{self._credentials.user}\0{self._credentials.password}".encode()

    def answer(self, token: bytes) -> bytes | None:  # noqa: ARG002 - it is empty
        """Ends the exchange."""
        return None


class ScramClient(SaslClient):
    """Proof of a password, and verification that the server knows it."""

    def __init__(self, credentials: ClientSecurity, nonce: str) -> None:
        self._credentials = credentials
        self._nonce = nonce
        self._bare = b""
        self._signature = b""

    def first(self) -> bytes:
        """User and nonce, and the extension of a delegation token."""
        name = scram.escaped(self._credentials.user)
        extension = ",tokenauth=true" if self._credentials.token else ""
        self._bare = f"n={name},r={self._nonce}{extension}".encode()
        return b"n,," + self._bare

    def answer(self, token: bytes) -> bytes | None:
        """Proves the password, then verifies the server's signature."""
        if self._signature:
            if scram.from_text(scram.attributes(token)["v"]) != self._signature:
                raise Failed
            return None
        mechanism, said = self._credentials.mechanism, scram.attributes(token)
        password, salt = self._credentials.password, scram.from_text(said["s"])
        salted = scram.salted_password(mechanism, password, salt)
        client_key = scram.sign(mechanism, salted, b"Client Key")
        unproved = f"c=biws,r={said['r']}".encode()
        spoken = self._bare + b"," + token + b"," + unproved
        stored = scram.hashed(mechanism, client_key)
        proof = scram.xor(client_key, scram.sign(mechanism, stored, spoken))
        server_key = scram.sign(mechanism, salted, b"Server Key")
        self._signature = scram.sign(mechanism, server_key, spoken)
        return unproved + b",p=" + scram.to_text(proof).encode()


def client_of(credentials: ClientSecurity, nonce: str) -> SaslClient:
    """A client's part of an exchange of its ``sasl.mechanism``."""
    if credentials.mechanism == PLAIN:
        return PlainClient(credentials)
    return ScramClient(credentials, nonce)
