"""The official client in Python calls tools one after another, and holds every answer against the schema of its tool.

Told in one argument, as JSON, how to reach the server and what to call. Says in a line of JSON which tools there are and
what came of each call.
"""

import asyncio
import json
import sys

from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters


def filled(arguments, kept):
    """Arguments with what earlier answers have said in the place of `$name`."""
    if isinstance(arguments, dict):
        return {name: filled(value, kept) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [filled(value, kept) for value in arguments]
    if isinstance(arguments, str) and arguments.startswith("$"):
        return kept[arguments[1:]]
    return arguments


def at(value, pointer):
    for part in pointer.strip("/").split("/"):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


async def called(client, step, kept):
    """The answer of a call, repeated with the cursor of the last answer where the step waits for a member to be true."""
    arguments = filled(step["arguments"], kept)
    while True:
        # The client itself holds the answer against the schema.
        result = await client.call_tool(step["tool"], arguments, read_timeout_seconds=60)
        awaited = step.get("until")
        if result.is_error or awaited is None or result.structured_content[awaited]:
            return result
        arguments = arguments | {"cursor": result.structured_content["cursor"], "max_wait_s": 20}


async def drive(client, steps):
    tools = (await client.list_tools()).tools
    schemas = {tool.name: tool.output_schema for tool in tools}
    kept, calls = {}, []
    for step in steps:
        said = {"tool": step["tool"]}
        calls.append(said)
        try:
            result = await called(client, step, kept)
        except Exception as error:
            said["wrong"] = str(error)[:400]
            continue
        if result.is_error:
            said["refused"] = result.content[0].text
            continue
        answer = result.structured_content
        said["answer"] = answer
        for error in Draft202012Validator(schemas[step["tool"]]).iter_errors(answer):
            said["wrong"] = f"{error.json_path}: {error.message}"[:400]
        for name, pointer in step.get("keep", {}).items():
            try:
                kept[name] = at(answer, pointer)
            except (LookupError, TypeError):
                said["wrong"] = f"there is nothing at {pointer}"
    print(json.dumps({"tools": schemas, "calls": calls}), flush=True)


async def main(how):
    command = StdioServerParameters(command=how["command"], args=how["args"], env=how["env"], cwd=how["cwd"])
    async with Client(command, mode=how["mode"]) as client:
        await drive(client, how["steps"])


asyncio.run(main(json.loads(sys.argv[1])))
