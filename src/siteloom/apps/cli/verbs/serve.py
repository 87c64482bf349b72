"""`siteloom serve`: the workspace in a browser."""

from __future__ import annotations

import socket
from contextlib import closing, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siteloom.apps.cli.terminal import Shell
from siteloom.core.errors import MissingExtra, ServerError, UsageError

if TYPE_CHECKING:
    from siteloom.store.store import Store

NAME = "serve"

_WAITING_CONNECTIONS = 2048  # as many as uvicorn lets wait


def run(
    shell: Shell,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen: others need an account.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port to listen at; 0 for any.")
    ] = 8787,
    certificate: Annotated[
        str | None,
        typer.Option("--certificate", metavar="FILE", help="Serve https with this certificate (PEM)."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="The private key of the certificate (PEM).")
    ] = None,
    trusted_proxy: Annotated[
        str,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="Believe a proxy at this address who its visitors are and whether they use https.",
        ),
    ] = "127.0.0.1,::1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Show the workspace in a browser, and work on it there.

    Only this machine can reach it unless --host says otherwise. As long as there are no accounts, whoever
    sits at this machine may do everything; others are not served before siteloom user add has made one.
    Without --certificate, a proxy that speaks https should stand before a server that others reach. A
    workspace is served by one server at a time.

    Long work is done as jobs, one after the other. Ctrl-C stops the server, with the job that runs. -v shows
    each request. /health says whether it is well, /metrics what it does, for Prometheus. Needs the extra
    server.
    """
    import asyncio
    import webbrowser

    try:
        import uvicorn

        from siteloom.apps.server import app as application
        from siteloom.apps.server.connections import server_config
        from siteloom.core.file_lock import server_lock
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("siteloom"):
            raise
        raise MissingExtra("siteloom serve", "server") from error
    encryption = _encryption(certificate, key)
    with shell.store() as store, server_lock(store.folder):
        address = _checked_address(shell, store, host, is_encrypted=bool(encryption))
        with closing(_listener(address, port)) as listener:
            place = _place(listener, is_encrypted=bool(encryption))
            app = application.create_app(store, shell.settings)
            config = server_config(
                app, shell.settings.serve.timeout, forwarded_allow_ips=trusted_proxy, **encryption
            )

            class Server(uvicorn.Server):
                """Says where it is when it answers: only from then on it stops in good order."""

                async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                    await super().startup(sockets)
                    listener.listen(_WAITING_CONNECTIONS)  # more than are taken at once
                    shell.say(f"Siteloom is at {place}. Ctrl-C stops it.")
                    if open_browser:
                        await asyncio.to_thread(webbrowser.open, place)

            try:
                with suppress(KeyboardInterrupt):  # passed on by uvicorn when it has stopped because of it
                    Server(config).run(sockets=[listener])
            finally:
                # Pressed twice, uvicorn leaves on the spot; a job must not go on without its server.
                app.state.services.jobs.stop()
    shell.say("Stopped.")


def _encryption(certificate: str | None, key: str | None) -> dict[str, Any]:
    """What uvicorn needs for https, or nothing."""
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        raise UsageError("Give --certificate and --key, or neither.")
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # and those of ssl, which are such
        raise UsageError(
            f"The certificate {certificate} cannot be used with the key {key}: {error.strerror or error}."
        ) from error
    return {"ssl_certfile": certificate, "ssl_keyfile": key}


def _checked_address(shell: Shell, store: Store, host: str, *, is_encrypted: bool) -> str:
    """The address of a host, if others may be served there."""
    try:
        address = ip_address(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, ValueError) as error:
        raise UsageError(
            f"There is no address {host} to listen at: give one of this machine, such as 127.0.0.1."
        ) from error
    if not address.is_loopback:
        if not store.accounts.any_enabled():
            raise UsageError(
                f"At {host} others could reach this workspace, but there is no account: make one with "
                "siteloom user add NAME, or leave --host out."
            )
        if not is_encrypted:
            shell.warn(
                "Passwords would travel unencrypted: let a proxy with https stand before this, or give "
                "--certificate and --key."
            )
    return str(address)


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=_WAITING_CONNECTIONS)
    except OSError as error:
        raise ServerError(
            f"Nothing can listen at {address} port {port}: {error.strerror or error}; give another --port."
        ) from error


def _place(listener: socket.socket, *, is_encrypted: bool) -> str:
    """What to type into a browser."""
    address, port = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    return f"http{'s' * is_encrypted}://{shown}:{port}/"
