"""Certificates of the test cluster: one authority, and one pair for each of its parts. Good for 30 days."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "write_key_pair"]

_DAYS = datetime.timedelta(days=30)


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _write_key(path: Path, key: rsa.RSAPrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)


def write_key_pair(private: Path, public: Path) -> None:
    """A bare key pair, for service account tokens."""
    key = _new_key()
    _write_key(private, key)
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


class Authority:
    """A certificate authority in a directory: ca.crt there, and `issue` writes NAME.crt and NAME.key beside it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = _new_key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "testbed")])
        self.certificate = self._sign(self._name, self._key, (), authority=True)
        (directory / "ca.crt").write_bytes(self.certificate)

    def issue(self, name: str, common: str, organization: str = "", hosts: tuple[str, ...] = ()) -> None:
        """A pair for `common` in `organization` (a user's groups), valid for these host names and addresses."""
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
        if organization:
            parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        key = _new_key()
        _write_key(self._directory / f"{name}.key", key)
        (self._directory / f"{name}.crt").write_bytes(self._sign(x509.Name(parts), key, hosts))

    def _sign(
        self, subject: x509.Name, key: rsa.RSAPrivateKey, hosts: tuple[str, ...], *, authority: bool = False
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + _DAYS)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
