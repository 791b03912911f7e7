"""Rooms: groups of sockets that receive the same messages, in one process or across workers.

Every member has a bounded queue and a task that empties it, so a slow reader neither slows the
others nor fills the memory: when its queue is full it is closed with 1013 (S-75).
`_websockets.relay` passes messages to other workers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from treefold_http._runtime.boot_report import SettingsError, TreefoldError
from treefold_http._runtime.current_application import current_application, entered
from treefold_http._runtime.name_space import load_project_namespace, load_project_settings
from treefold_http._websockets.relay import Relay, RoomMessage, check_relay_requirements
from treefold_http._websockets.websocket import OVERLOADED, WebSocket, WebSocketDisconnect
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._runtime.name_space import NameSpace
    from treefold_http._runtime.runtime import Runtime

QUEUE = 32
"""Messages that wait for one socket; a client that reads slower than that is dropped."""


class Rooms:
    """Groups of sockets with join, leave and broadcast.

    Applications of one process that have a module in common do not share its rooms.

    Args:
        redis: a Redis URL, or True for that of the setting `redis_url`; messages then reach the
            rooms of every worker of the application. None for this process.
        queue: how many messages may wait for one socket.
        shared: reach the rooms of all applications of the environment that say so, on one database
            of Redis; they need one `secret_key`.

    Raises:
        TreefoldError: when `redis` is set and the `redis` extra is not installed, or production has
            no `secret_key` that signs the messages; or when it is not set and several processes
            serve.
        ValueError: when the URL is not one of Redis, or for `shared` without one.
    """

    def __init__(
        self, redis: str | bool | None = None, *, queue: int = QUEUE, shared: bool = False
    ) -> None:
        redis = None if redis is False else redis
        if redis is None and int(os.environ.get("TREEFOLD_WORKER_PROCESSES", "1")) > 1:
            raise TreefoldError(
                "Rooms() reaches only the sockets of its own process, and several processes serve;"
                " give it redis=True, or serve with one process"
            )
        if shared and redis is None:
            raise ValueError("Rooms(shared=True) must have redis=True, got none")
        self._redis, self._queue, self._shared = redis, queue, shared
        if redis is not None:
            app = entered.get()  # a boot imports the module
            if isinstance(redis, str) or app is not None:
                check_relay_requirements(
                    self._find_redis_url(app), None if app is None else app.names
                )
        # weak: the rooms of a module may outlive an application, as in tests
        self._of: WeakKeyDictionary[Runtime, _OwnRooms] = WeakKeyDictionary()
        self._of_script: _OwnRooms | None = None

    @property
    def is_in_memory(self) -> bool:
        """True if messages reach the sockets of this process only."""
        return self._redis is None

    async def join(self, room: str, websocket: WebSocket) -> None:
        """Add an accepted socket to a room; it is removed when its handler ends.

        Raises:
            RuntimeError: when the socket is not accepted.
            WebSocketDisconnect: when it is closed.
            SettingsError: when another deployment uses the names of this application in Redis.
        """
        await self._get_or_create_rooms(websocket.app).join_room(room, websocket)

    async def leave(self, room: str, websocket: WebSocket) -> None:
        """Remove a socket from a room; do nothing if it is not a member."""
        self._get_or_create_rooms(websocket.app).leave_room(room, websocket)

    async def forget(self, websocket: WebSocket) -> None:
        """Remove a socket from every room."""
        await self._get_or_create_rooms(websocket.app).remove_socket_from_all_rooms(websocket)

    @asynccontextmanager
    async def joined(self, room: str, websocket: WebSocket) -> AsyncGenerator[None]:
        """Join a room for the duration of a block."""
        await self.join(room, websocket)
        try:
            yield
        finally:
            await self.leave(room, websocket)

    async def broadcast(self, room: str, message: RoomMessage) -> None:
        """Queue text or bytes for every socket of a room; does not wait for the clients.

        From a job, a script or a schedule as from a handler: with `redis` the message reaches the
        sockets of every process.

        Raises:
            TypeError: when the message is neither.
            RuntimeError: outside of requests and scopes, when several applications run here.
            SettingsError: as `join`.
        """
        if not isinstance(cast("object", message), (str, bytes)):
            text = f"A room message must be str or bytes, got {type(message).__qualname__!r}"
            raise TypeError(text)
        await self._get_or_create_current_rooms().broadcast_message(room, message)
        await asyncio.sleep(0)  # lets members send: a loop of broadcasts must not fill their queues

    def members(self, room: str) -> list[WebSocket]:
        """Return the sockets of a room that this process serves.

        Raises:
            RuntimeError: as `broadcast`.
        """
        return self._get_or_create_current_rooms().list_members(room)

    async def close(self) -> None:
        """End the subscribers; to be called by a shutdown hook or an extension."""
        for own in [*self._of.values(), *([self._of_script] if self._of_script else ())]:
            await own.close_relay()

    def _find_redis_url(self, app: Runtime | None) -> str:
        """Return the URL of the server, of the settings of the project without an application.

        Raises:
            SettingsError: `redis=True`, and they name none.
        """
        if isinstance(self._redis, str):
            return self._redis
        settings = load_project_settings() if app is None else app.settings
        if settings is None or not settings.redis_url:
            raise SettingsError(
                "Rooms(redis=True) needs an address; set TREEFOLD_REDIS_URL, or pass"
                " redis='redis://...'"
            )
        return settings.redis_url

    def _get_or_create_rooms(self, app: Runtime) -> _OwnRooms:
        if (found := self._of.get(app)) is None:
            names = app.names if self._redis is not None else None
            found = self._of[app] = self._make_own_rooms(app, names)
        return found

    def _get_or_create_current_rooms(self) -> _OwnRooms:
        if (app := current_application()) is not None:
            return self._get_or_create_rooms(app)
        if self._of_script is None:
            names = load_project_namespace() if self._redis is not None else None
            self._of_script = self._make_own_rooms(None, names)
        return self._of_script

    def _make_own_rooms(self, app: Runtime | None, names: NameSpace | None) -> _OwnRooms:
        own = _OwnRooms(self._queue)
        if names is not None:
            url, deliver = self._find_redis_url(app), own.deliver_to_local_members
            own.relay = Relay(url, deliver, names=names, shared=self._shared)
        return own


class _OwnRooms:
    """The rooms of one application, with the members that this process serves.

    Attributes:
        relay: passes messages on to other workers; None for this process.
    """

    relay: Relay | None = None

    def __init__(self, queue: int) -> None:
        self._queue = queue
        self._rooms: dict[str, dict[WebSocket, _Member]] = {}
        self._members: dict[WebSocket, _Member] = {}

    async def join_room(self, room: str, websocket: WebSocket) -> None:
        websocket.check_open()
        if self.relay is not None:
            await self.relay.start_listening()
        # one member for all rooms of a socket: a single queue keeps the order of its messages
        if (member := self._members.get(websocket)) is None:
            member = self._members[websocket] = _Member(websocket, self._queue)

            async def leave_rooms(error: BaseException | None) -> None:
                await self.remove_socket_from_all_rooms(websocket)

            websocket.on_exit(leave_rooms)
        self._rooms.setdefault(room, {})[websocket] = member

    def leave_room(self, room: str, websocket: WebSocket) -> None:
        members = self._rooms.get(room, {})
        members.pop(websocket, None)
        if not members:
            self._rooms.pop(room, None)

    async def remove_socket_from_all_rooms(self, websocket: WebSocket) -> None:
        # a list, as a room that becomes empty leaves the dictionary
        for room in [name for name, members in self._rooms.items() if websocket in members]:
            self.leave_room(room, websocket)
        if (member := self._members.pop(websocket, None)) is not None:
            await member.stop_sending()

    async def broadcast_message(self, room: str, message: RoomMessage) -> None:
        if self.relay is None or not await self.relay.publish_and_report_echo(room, message):
            self.deliver_to_local_members(room, message)

    def list_members(self, room: str) -> list[WebSocket]:
        return list(self._rooms.get(room, ()))

    def deliver_to_local_members(self, room: str, message: RoomMessage) -> None:
        for member in list(self._rooms.get(room, {}).values()):
            member.queue_message_or_drop_socket(message)

    async def close_relay(self) -> None:
        if self.relay is not None:
            await self.relay.close()


class _Member:
    """A socket with the queue of its messages."""

    def __init__(self, websocket: WebSocket, size: int) -> None:
        self._websocket = websocket
        self._queue: asyncio.Queue[RoomMessage] = asyncio.Queue(size)
        self._too_slow = False
        self._pump = asyncio.ensure_future(self._pump_queued_messages())

    def queue_message_or_drop_socket(self, message: RoomMessage) -> None:
        if self._too_slow:
            return
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._too_slow = True
            self._pump.cancel()  # it waits for a client that does not read
            self._websocket.drop(OVERLOADED)

    async def stop_sending(self) -> None:
        self._pump.cancel()
        await asyncio.wait([self._pump])

    async def _pump_queued_messages(self) -> None:
        websocket = self._websocket
        try:
            while True:
                message = await self._queue.get()
                if isinstance(message, str):
                    await websocket.send_text(message)
                else:
                    await websocket.send_bytes(message)
        except WebSocketDisconnect:
            return
        except asyncio.CancelledError:
            # a pump that `queue_message_or_drop_socket` has cancelled ends like that of a closed
            # socket
            if not self._too_slow:
                raise
        except Exception as error:  # the server refused the message; the handler goes on
            get_logger().error("a room message could not be sent", exc_info=error)
