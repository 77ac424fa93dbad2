"""Landscapes sent to a server."""

from __future__ import annotations

import socket
import threading

import pytest

from valleyscope.landscape.storage.upload import NotSent, send_landscape


def test_a_server_that_refuses_before_it_has_all_is_heard() -> None:
    answer = b'{"detail": "too large: at most 5 bytes"}'
    head = f"HTTP/1.1 413 Too Large\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n".encode()

    def refuse(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(head + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse, args=(listener,))
        thread.start()
        with pytest.raises(NotSent, match="refused the landscape: too large: at most 5 bytes"):
            send_landscape(bytes(2**24), f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
