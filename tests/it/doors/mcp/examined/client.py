"""The official client in Python delegates, waits while a person is asked, and reads what came of it.

Told in one argument, as JSON, how to reach the server, how to begin and what to ask. Says in a line of JSON each what it
sees, so that whoever started it can do what a person would.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def tell(**what):
    print(json.dumps(what), flush=True)


async def does(client, tool, **arguments):
    result = await client.call_tool(tool, arguments, read_timeout_seconds=60)
    assert not result.is_error, (tool, result)
    assert result.content[0].text, (tool, result)
    return result.structured_content


async def follow(client, task):
    """Waits as a model would: call by call, each with the cursor of the one before."""
    seen, cursor = [], None
    while True:
        now = await does(client, "task_wait", task_id=task, cursor=cursor, max_wait_s=20)
        if not seen or seen[-1] != now["state"]:
            seen.append(now["state"])
        if now["is_over"]:
            return seen, now
        cursor = now["cursor"]


async def drive(client, task, goal):
    tools = await client.list_tools()
    server = client.server_info and client.server_info.name
    tell(version=client.protocol_version, server=server, tools=[it.name for it in tools.tools])
    begun = await does(client, "delegate", goal=goal, worker="shell", task_id=task)
    tell(begun=begun)
    waiting = await does(client, "approvals_list")
    tell(approvals=waiting["approvals"])
    seen, over = await follow(client, task)
    output = await does(client, "task_output", task_id=task)
    tell(seen=seen, over=over, text=output["text"])
    refused = await client.call_tool("task_wait", {"task_id": "no-such-task"})
    tell(refused=refused.is_error, why=refused.content[0].text)


async def main(how):
    if "url" in how:
        async with httpx2.AsyncClient(headers=how.get("headers", {}), timeout=60) as http:
            async with Client(streamable_http_client(how["url"], http_client=http), mode=how["mode"]) as client:
                await drive(client, how["task"], how["goal"])
    else:
        command = StdioServerParameters(command=how["command"], args=how["args"], env=how["env"], cwd=how["cwd"])
        async with Client(command, mode=how["mode"]) as client:
            await drive(client, how["task"], how["goal"])


asyncio.run(main(json.loads(sys.argv[1])))
