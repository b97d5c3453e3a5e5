"""An editor by the Python SDK of the Agent Client Protocol: editor.py FOLDER PROMPT COMMAND…

It starts the command, has it ask, gives it one prompt, allows what it is asked, and prints a line of JSON for all that it sees.
"""
import asyncio
import json
import os
import sys
from typing import Any

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, DeniedOutcome, Implementation, RequestPermissionResponse

FOLDER, WORDS, COMMAND, *ARGS = sys.argv[1:]
# Lines may be long, and what the agent complains about is to be seen.
WAY = {"limit": 32 << 20, "stderr": None}


def plain(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class Editor(Client):
    async def request_permission(self, session_id, tool_call, options, **_):
        option = next((it for it in options if it.kind == "allow_once"), None)
        tell(asked=plain(tool_call), chosen=option and option.kind)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def session_update(self, session_id, update, **_):
        tell(update=plain(update))


async def main() -> None:
    async with spawn_agent_process(Editor(), COMMAND, *ARGS, cwd=FOLDER, env=dict(os.environ), transport_kwargs=WAY) as (agent, _):
        hello = await agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="editor", version="1"),
        )
        tell(agent=plain(hello.agent_info) if hello.agent_info else None)
        session = await agent.new_session(cwd=FOLDER, mcp_servers=[])
        # An agent may begin in a mode in which it asks nothing.
        mode = os.environ.get("EDITOR_MODE", "default")
        if session.modes and any(it.id == mode for it in session.modes.available_modes):
            await agent.set_session_mode(session_id=session.session_id, mode_id=mode)
        ended = await agent.prompt(session_id=session.session_id, prompt=[text_block(WORDS)])
        tell(stop=ended.stop_reason)


asyncio.run(main())
