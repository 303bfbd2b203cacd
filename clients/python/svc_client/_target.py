"""Where requests go: the service's address, the proxy of the environment, and the token."""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Dict, Optional
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")


@dataclass(frozen=True)
class Proxy:
    host: str
    port: int
    authorization: Optional[str] = field(repr=False)


@dataclass(frozen=True)
class Target:
    """`host_header`: the name as the service sees it. `prefix`: what stands before /v1 in every path."""

    secure: bool
    host: str
    port: int
    host_header: str
    prefix: str
    proxy: Optional[Proxy]


def target_of(base_url: str, proxy: Optional[str]) -> Target:
    """`base_url` with or without /v1. `proxy`: None asks the environment, an empty text means none. Raises ValueError."""
    url = _split(base_url, "base_url")
    if url.username is not None or url.query or url.fragment:
        raise ValueError("base_url must have no user, query or fragment; a token is given as token")
    path = url.path.rstrip("/")
    path = path[: -len("/v1")] if path.endswith("/v1") else path
    host, secure = url.hostname or "", url.scheme == "https"
    found = _from_environment(url.scheme, host) if proxy is None else proxy
    return Target(
        secure=secure,
        host=host,
        port=url.port or (443 if secure else 80),
        host_header=_host_header(url),
        prefix=path,
        proxy=_proxy(found) if found else None,
    )


def _split(text: str, what: str) -> SplitResult:
    try:
        url = urlsplit(text)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        valid = valid and _VISIBLE.match(text) is not None
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"{what} must be like http://127.0.0.1:3112 or https://code.example.com")
    return url


def _host_header(url: SplitResult) -> str:
    host = url.hostname or ""
    name = f"[{host}]" if ":" in host else host
    return name if url.port is None else f"{name}:{url.port}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _from_environment(scheme: str, host: str) -> Optional[str]:
    """HTTP_PROXY, HTTPS_PROXY, NO_PROXY; never for this machine."""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies().get(scheme)


def _proxy(text: str) -> Proxy:
    url = _split(text if "://" in text else f"http://{text}", "a proxy")
    if url.scheme != "http":
        raise ValueError("a proxy must be reached by http://")
    if url.username is None:
        authorization = None
    else:
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
        authorization = f"Basic {b64encode(pair.encode('utf-8')).decode('ascii')}"
    return Proxy(url.hostname or "", url.port or 80, authorization)


def authorization_of(token: Optional[str]) -> Dict[str, str]:
    """The header of a token or API key. Raises ValueError, which never shows it."""
    if token is None:
        return {}
    if not isinstance(token, str) or _VISIBLE.match(token) is None:
        raise ValueError("token must be one line of visible ASCII characters")
    return {"Authorization": f"Bearer {token}"}
