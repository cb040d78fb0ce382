"""The HTTP side of the plugin: Argo's executor-plugin protocol, one route, a bearer token. Of steps it knows nothing."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from jobset_steps.errors import BadInput
from jobset_steps.serve.calls import Call, call_of, refused

__all__ = ["app_of"]

EXECUTE = "/api/v1/template.execute"


def app_of(answer: Callable[[Call], dict[str, Any]], token: Callable[[], str]) -> Starlette:
    """The ASGI app. `token` reads the token that Argo gave to agent and plugin, anew each time."""

    async def execute(request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        wanted = token()
        if not wanted or not hmac.compare_digest(given.encode(), wanted.encode()):
            return PlainTextResponse("the bearer token is not the one that Argo gave to this plugin", 403)
        try:
            call = call_of(json.loads(await request.body()))
        except BadInput as error:
            return JSONResponse(refused(str(error)))
        except (ValueError, TypeError, AttributeError) as error:
            return PlainTextResponse(f"this is no request of Argo's agent: {error}", 400)
        if call is None:
            # The agent asks all plugins in turn: this says that the template is another's.
            return PlainTextResponse("the template is not of this plugin", 404)
        return JSONResponse(await run_in_threadpool(answer, call))

    return Starlette(routes=[Route(EXECUTE, execute, methods=["POST"])])
