"""A certificate for one run, made as it begins: whoever holds it and its key is of the run."""

from __future__ import annotations

import ipaddress
import socket
from datetime import UTC, datetime

from penstock.engine.protocol.tls import Credential

ALWAYS = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def is_loopback(host: str) -> bool:
    """Whether only this machine can be meant.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("10.0.0.7")
    (True, True, False)
    """
    try:
        found = {str(one[4][0]) for one in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


def make_credential() -> Credential:
    """A new key, and a certificate that it has signed itself.

    It is valid at all times: it goes with the run, is known by what it is, and no clock of a machine is to end it.
    """
    from cryptography import x509  # of the driver's only, and only where something is encrypted
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "penstock")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), *ALWAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Credential(made.public_bytes(pem).decode(), secret.decode())
