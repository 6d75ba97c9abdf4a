# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Wherry. Each is an OSError with an errno, and also the built-in exception of that errno, if there is one."""

import errno as _errno

__all__ = ["BrokenPipe", "Cancelled", "ConnectionRefused", "ConnectionReset", "Error", "Timeout"]


class Error(OSError):
    """A failure: `errno`, and a text with the operation, the reason and advice."""

    operation: str = ""
    """The operation that failed, such as "connect"."""
    address: str = ""
    """The object of the operation; may be empty."""
    advice: str = ""
    """What the user can do; may be empty."""
    moved: int = 0
    """Bytes that the call moved before it failed."""


class Timeout(Error, TimeoutError):
    """ETIMEDOUT: the timeout of a call has passed."""


class ConnectionRefused(Error, ConnectionRefusedError):
    """ECONNREFUSED: no listener in time, or the listener refused."""


class ConnectionReset(Error, ConnectionResetError):
    """ECONNRESET: the peer died, or closed before it finished sending."""


class BrokenPipe(Error, BrokenPipeError):
    """EPIPE: the peer has closed or died, and receives no more."""


class Cancelled(Error):
    """ECANCELED: cancel(), or close() by another thread, ended the call."""


class _FileNotFound(Error, FileNotFoundError):
    pass


class _FileExists(Error, FileExistsError):
    pass


class _Permission(Error, PermissionError):
    pass


BY_ERRNO: dict[int, type[Error]] = {
    _errno.ETIMEDOUT: Timeout,
    _errno.ECONNREFUSED: ConnectionRefused,
    _errno.ECONNRESET: ConnectionReset,
    _errno.EPIPE: BrokenPipe,
    _errno.ECANCELED: Cancelled,
    _errno.ENOENT: _FileNotFound,
    _errno.EEXIST: _FileExists,
    _errno.EACCES: _Permission,
    _errno.EPERM: _Permission,
}
