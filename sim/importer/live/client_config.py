"""``--command-config``: a client's properties, as Kafka's own tools take them, for kafka-python.

Names and forms are Kafka's; no value is ever part of a message. Left out: Java's key stores (JKS,
PKCS12), which Python cannot read, OAUTHBEARER, and configuration providers.

Source: ``CommonClientConfigs``, ``SaslConfigs``, ``SslConfigs``; KIP-651 (PEM).
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.importer.masking import is_setting_name
from sim.importer.properties import parse

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
_JAAS: Final = re.compile(
    r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;'"]+))"""
)
_ESCAPED: Final = re.compile(r"\\(.)")
_TAKEN: Final = (
    *("security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.kerberos.service.name"),
    *("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.certificates"),
    *("ssl.keystore.location", "ssl.keystore.type", "ssl.key.password", "client.id"),
    *("ssl.endpoint.identification.algorithm", "request.timeout.ms", "bootstrap.servers"),
)
_CONVERT: Final = (
    "convert it to PEM (openssl pkcs12 -in STORE -out store.pem) and give its type as PEM"
)
_MS: Final = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Options of kafka-python's clients, and what of the file was not used."""

    options: dict[str, Any] = field(default_factory=dict, repr=False)
    unused: list[str] = field(default_factory=list)
    """Names of settings without effect here."""


def read(path: Path) -> ClientConfig:
    """The options of a file.

    Raises:
        SimulationError: If it cannot be read, or says what cannot be done here; without values.
    """
    try:
        values = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SimulationError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SimulationError(f"{path}: not UTF-8 text") from None
    try:
        return options_of(values)
    except SimulationError as error:
        raise SimulationError(f"{path}: {error}") from None


def options_of(values: Mapping[str, str]) -> ClientConfig:
    """The options of a client's properties.

    Raises:
        SimulationError: For what cannot be done here; without values.
    """
    for name, value in values.items():
        if value.startswith("${") and name in _TAKEN:
            raise SimulationError(f"{name}: configuration providers are not read; give the value")
    protocol = _one_of(values, "security.protocol", "PLAINTEXT", _PROTOCOLS)
    options: dict[str, Any] = {"security_protocol": protocol}
    if "client.id" in values:
        options["client_id"] = values["client.id"]
    if patience := values.get("request.timeout.ms", ""):
        if _MS.fullmatch(patience) is None:
            raise SimulationError("request.timeout.ms: allowed: a whole number of milliseconds")
        options["request_timeout_ms"] = int(patience)
    if protocol.startswith("SASL"):
        options |= _sasl(values)
    if protocol.endswith("SSL"):
        options["ssl_context"] = _tls(values)
    unused = [name if is_setting_name(name) else "a line" for name in values if name not in _TAKEN]
    return ClientConfig(options, sorted(dict.fromkeys(unused)))


def _one_of(values: Mapping[str, str], name: str, usual: str, known: tuple[str, ...]) -> str:
    value = values.get(name, usual).upper()
    if value not in known:
        raise SimulationError(f"{name}: not one that is known here; allowed: {', '.join(known)}")
    return value


def _sasl(values: Mapping[str, str]) -> dict[str, Any]:
    mechanism = _one_of(values, "sasl.mechanism", "GSSAPI", _MECHANISMS)
    found: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "GSSAPI":
        if name := values.get("sasl.kerberos.service.name", ""):
            found["sasl_kerberos_service_name"] = name
        return found
    given = {
        name: _ESCAPED.sub(r"\1", quoted or single) or bare
        for name, quoted, single, bare in _JAAS.findall(values.get("sasl.jaas.config", ""))
    }
    for option, name in (("sasl_plain_username", "username"), ("sasl_plain_password", "password")):
        if name not in given:
            raise SimulationError(f'sasl.jaas.config: no {name}="..." for {mechanism}')
        found[option] = given[name]
    return found


def _tls(values: Mapping[str, str]) -> ssl.SSLContext:
    """Trust, this client's certificate and host names, as the file says; at least TLS 1.2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https")
    context.check_hostname = bool(algorithm)
    store = _pem(values, "ssl.truststore")
    try:
        if certificates := values.get("ssl.truststore.certificates", ""):
            context.load_verify_locations(cadata=certificates)
        elif store:
            context.load_verify_locations(store)
        else:
            context.load_default_certs()
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        raise SimulationError("ssl.truststore: no certificates in PEM can be read there") from None
    if values.get("ssl.keystore.key"):
        raise SimulationError(
            "ssl.keystore.key: a key inside the properties is not used; put it with its "
            "certificate into a PEM file, and give ssl.keystore.location"
        )
    if own := _pem(values, "ssl.keystore"):
        try:
            context.load_cert_chain(own, password=values.get("ssl.key.password", ""))
        except (OSError, ValueError):
            raise SimulationError(
                "ssl.keystore.location: no certificate with its key in PEM can be read there; is "
                "ssl.key.password right?"
            ) from None
    return context


def _pem(values: Mapping[str, str], prefix: str) -> str:
    place = values.get(f"{prefix}.location", "")
    if place and values.get(f"{prefix}.type", "JKS").upper() != "PEM":
        raise SimulationError(f"{prefix}.location: a Java store cannot be read here; {_CONVERT}")
    return place
