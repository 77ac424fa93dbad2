"""Check the URL of an object store before connecting."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

LOCAL_SCHEMES: Final = ("file", "local")


def check_store_url(url: str) -> str:
    """The URL without a trailing slash; raises ValueError if it is not valid."""
    found = urlsplit(url)
    if not found.scheme or "://" not in url or "::" in url:
        raise ValueError("must be the URL of a store, such as s3://bucket/prefix or file:///mnt/valley")
    if found.scheme == "memory":
        raise ValueError("memory:// ends with the process, and other processes do not see it: use s3://bucket/prefix")
    if "@" in found.netloc or found.query or found.fragment or found.password:
        raise ValueError(
            "must have no credentials and no options: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead"
        )
    if found.scheme in LOCAL_SCHEMES and (found.netloc or not found.path.strip("/")):
        raise ValueError("must have the absolute path of a folder: file:///mnt/valley")
    if found.scheme not in LOCAL_SCHEMES and not found.netloc:
        raise ValueError("must name a bucket: s3://bucket/prefix")
    if any(part in ("", ".", "..") for part in found.path.rstrip("/").split("/")[1:]):
        raise ValueError("must have no empty part, . or .. in its path: use s3://bucket/prefix")
    return url.rstrip("/")
