"""A network of one wire between a worker and Postgres, which can be cut in the two ways in which wires fail."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

_RESET = struct.pack("ii", 1, 0)  # linger for no time: closing sends a reset


class Proxy:
    """Passes bytes on between its own port and another one.

    `swallow`: packets vanish in both directions and nobody is told, as behind a switch that is off. `sever`: every
    connection is reset and new ones are refused, as by a firewall. `heal` ends both; connections that were swallowed
    go on with what is sent from then on, late but whole, as TCP does.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._clear = asyncio.Event()
        self._clear.set()
        self._severed = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server: asyncio.Server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])

    def swallow(self) -> None:
        self._loop.call_soon_threadsafe(self._clear.clear)

    def sever(self) -> None:
        self._run(self._sever())

    def heal(self) -> None:
        self._severed = False
        self._loop.call_soon_threadsafe(self._clear.set)

    def close(self) -> None:
        self._run(self._sever())
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _sever(self) -> None:
        self._severed = True
        for writer in list(self._writers):
            _reset(writer)

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._clear.wait()
        if self._severed:
            _reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _reset(writer)
            return
        for pair in ((reader, far_writer, writer), (far_reader, writer, far_writer)):
            task = asyncio.create_task(self._pass_on(*pair))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._writers |= {writer, far_writer}

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._clear.wait()
                writer.write(data)
                await writer.drain()
        await self._clear.wait()  # the end of a connection is a packet, too
        for end in (writer, back):
            self._writers.discard(end)
            end.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


def _reset(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
