"""Maps an error of libcurl to an outcome: a table, as in `outcome`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.fetch.curl.libcurl import pycurl
from gossamer.model.records import Outcome

# Codes that pycurl has no name for (curl/curl.h).
_E_PROXY: Final = 97
_E_UNRECOVERABLE_POLL: Final = 99
_E_TOO_LARGE: Final = 100
_E_HTTP2_STREAM: Final = 92
_E_HTTP3: Final = 95
_E_SSL_CLIENTCERT: Final = 98
_E_PINNED_KEY: Final = 90
_E_ECH_REQUIRED: Final = 101

_NO_CERTIFICATE: Final = "alert certificate required"  # part of OpenSSL's message

# E_OPERATION_TIMEDOUT is not here: it depends on whether the request was sent.
CURL_OUTCOMES: Final[Mapping[int, Outcome]] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.DNS_FAILED,
    pycurl.E_COULDNT_CONNECT: Outcome.CONNECT_FAILED,
    pycurl.E_INTERFACE_FAILED: Outcome.CONNECT_FAILED,
    pycurl.E_NO_CONNECTION_AVAILABLE: Outcome.CONNECT_FAILED,
    _E_PROXY: Outcome.CONNECT_FAILED,
    pycurl.E_SSL_CONNECT_ERROR: Outcome.TLS_ERROR,
    pycurl.E_PEER_FAILED_VERIFICATION: Outcome.TLS_ERROR,
    pycurl.E_SSL_CERTPROBLEM: Outcome.TLS_ERROR,
    pycurl.E_SSL_CIPHER: Outcome.TLS_ERROR,
    pycurl.E_SSL_CACERT: Outcome.TLS_ERROR,
    pycurl.E_SSL_CACERT_BADFILE: Outcome.TLS_ERROR,
    pycurl.E_SSL_ISSUER_ERROR: Outcome.TLS_ERROR,
    pycurl.E_SSL_INVALIDCERTSTATUS: Outcome.TLS_ERROR,
    pycurl.E_SSL_ENGINE_INITFAILED: Outcome.TLS_ERROR,
    _E_SSL_CLIENTCERT: Outcome.TLS_ERROR,
    _E_PINNED_KEY: Outcome.TLS_ERROR,
    _E_ECH_REQUIRED: Outcome.TLS_ERROR,
    pycurl.E_GOT_NOTHING: Outcome.DISCONNECTED,
    pycurl.E_RECV_ERROR: Outcome.DISCONNECTED,
    pycurl.E_SEND_ERROR: Outcome.DISCONNECTED,
    pycurl.E_PARTIAL_FILE: Outcome.DISCONNECTED,
    pycurl.E_SSL_SHUTDOWN_FAILED: Outcome.DISCONNECTED,
    _E_UNRECOVERABLE_POLL: Outcome.DISCONNECTED,
    _E_TOO_LARGE: Outcome.HEADER_TOO_LARGE,
    pycurl.E_UNSUPPORTED_PROTOCOL: Outcome.PROTOCOL_ERROR,  # also for HTTP/0.9
    pycurl.E_FTP_WEIRD_SERVER_REPLY: Outcome.PROTOCOL_ERROR,  # 8, CURLE_WEIRD_SERVER_REPLY in HTTP
    pycurl.E_URL_MALFORMAT: Outcome.PROTOCOL_ERROR,
    pycurl.E_HTTP2: Outcome.PROTOCOL_ERROR,
    _E_HTTP2_STREAM: Outcome.PROTOCOL_ERROR,
    _E_HTTP3: Outcome.PROTOCOL_ERROR,
    pycurl.E_BAD_CONTENT_ENCODING: Outcome.PROTOCOL_ERROR,
}


def curl_outcome(code: int, *, is_sent: bool, message: str = "") -> Outcome:
    """Return the outcome for an error of libcurl; an unknown one counts as a protocol error."""
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return Outcome.TIMEOUT if is_sent else Outcome.CONNECT_TIMEOUT
    # libcurl reports a bad chunk with the code of a broken connection; only the message differs.
    if code == pycurl.E_RECV_ERROR and message.startswith("chunk "):
        return Outcome.PROTOCOL_ERROR
    # With TLS 1.3 a client learns only after its request that the server wants a certificate.
    if code in (pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR) and _NO_CERTIFICATE in message:
        return Outcome.TLS_ERROR
    outcome = CURL_OUTCOMES.get(code, Outcome.PROTOCOL_ERROR)
    # A peer that hangs up during the TLS handshake never saw a request.
    if outcome is Outcome.DISCONNECTED and not is_sent:
        return Outcome.CONNECT_FAILED
    return outcome
