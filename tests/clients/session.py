"""A session with the server, led by the Python client `mcp`, 1.x or 2.x, whichever is installed.

    session.py stdio|http initialize|discover COMMAND... | URL

Everything that the client hands back is looked at as it stood on the wire, so that both versions take the same steps. The
token for HTTP comes from ACK_MEM_TOKEN.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from pathlib import Path

NEWEST = {"initialize": "2025-11-25", "discover": "2026-07-28"}
TOOLS = ["get_context", "get_memory", "list_scopes", "query_memories"]
# The best match of this is a rejected memory, and an approved one says the same.
QUESTION = "container killed with exit code 137, SIGKILL, mostly for memory"
ANSWER = "ack_c03d5e_2026-05-19_008"
SERVED = ["approved", "promoted"]
MAJOR = int(importlib.metadata.version("mcp").split(".")[0])


def samples():
    """The sample memories as their files have them, by their ids: told by something else than the server."""
    files = (Path(__file__).parent / "../../scopes-example").glob("*/memories.jsonl")
    memories = [(file.parent.name, json.loads(line)) for file in files for line in file.read_text().splitlines() if line]
    return {memory["id"]: memory | {"scope": scope} for scope, memory in memories}


SAMPLES = samples()


def wire(model):
    """What a model of the client looks like in a message."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def same(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def holds(what, condition, found):
    if not condition:
        raise AssertionError(f"{what}: {str(found)[:600]}")


def genuine(memory, statuses=SERVED):
    """A memory says what the sample of its id says, and may be seen by who asked."""
    sample = SAMPLES.get(memory["id"])
    holds("it is a sample", sample, memory)
    same(memory["id"], (memory["title"], memory["status"]), (sample["title"], sample["status"]))
    holds("it may be shown", sample["status"] in statuses, memory)


def guarded(url, token):
    """Over HTTP nobody is let in without the token."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "ack-memory-checks", "version": "0"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for wrong in [None, "wrong", token + "0", token[:-1]]:
        more = {"Authorization": f"Bearer {wrong}"} if wrong else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers | more), timeout=20) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
        same(f"a client with the token {wrong} is refused", status, 401)


async def connect_1(stack, transport, era, target, headers):
    """The client 1.x, which speaks the older era alone: what it is told, and its session."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    same("the era that this client speaks", era, "initialize")
    if transport == "stdio":
        streams = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    else:
        http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
        streams = streamable_http_client(target[0], http_client=http)
    read, write = (await stack.enter_async_context(streams))[:2]
    session = await stack.enter_async_context(ClientSession(read, write))
    told = wire(await session.initialize())
    await session.send_ping()
    return session, told["protocolVersion"], told["serverInfo"], told["instructions"]


async def connect_2(stack, transport, era, target, headers):
    """The client 2.x, in the era asked for."""
    from mcp import Client, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    if transport == "stdio":
        server = StdioServerParameters(command=target[0], args=target[1:])
    else:
        http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
        server = streamable_http_client(target[0], http_client=http)
    # `auto` asks with server/discover, and would fall back to initialize unseen: the version that it ends with is compared.
    client = await stack.enter_async_context(Client(server, mode="legacy" if era == "initialize" else "auto"))
    if era == "initialize":
        await client.send_ping()
    return client, client.protocol_version, wire(client.server_info), client.instructions


async def refused(what, awaitable, code):
    """The error of the protocol with which a request is answered."""
    from mcp.shared import exceptions

    kind = exceptions.McpError if MAJOR == 1 else exceptions.MCPError
    try:
        answer = await awaitable
    except kind as error:
        same(f"{what}: code", error.error.code, code)
        return error.error
    raise AssertionError(f"{what}: answered with {answer!r}")


def same_in_words(tool, text, answer):
    """The text of an answer names every memory and scope that its structure holds."""
    lists = ["results", "recent_memories", "cross_project_learnings"]
    names = [memory["id"] for key in lists for memory in answer.get(key, [])]
    names += [scope["name"] for scope in answer.get("scopes", [])]
    if tool == "get_memory":
        names.append(answer["id"])
    for name in names:
        holds(f"{tool}: the text names {name}", name in text, text)


async def tools(session):
    listed = wire(await session.list_tools())["tools"]
    same("tools", [tool["name"] for tool in listed], TOOLS)
    for tool in listed:
        holds("a tool has a schema of its answer", tool.get("outputSchema", {}).get("type") == "object", tool)
        same("read-only", tool["annotations"]["readOnlyHint"], True)

    async def call(name, arguments):
        result = wire(await session.call_tool(name, arguments))
        holds(f"{name} is answered", not result.get("isError"), result)
        answer = result["structuredContent"]
        same_in_words(name, result["content"][0]["text"], answer)
        return answer

    found = await call("query_memories", {"query": QUESTION, "limit": 3})
    holds("the limit is kept", len(found["results"]) <= 3, found)
    holds("it is found", ANSWER in [memory["id"] for memory in found["results"]], found)
    for memory in found["results"]:
        genuine(memory)
    for status, asked in [("staging", ["staging"]), ("all", ["staging", *SERVED])]:
        more = (await call("query_memories", {"status": status, "limit": 50}))["results"]
        holds("something waits", any(memory["status"] == "staging" for memory in more), more)
        for memory in more:
            genuine(memory, asked)
    # The most and the least relevant, so that no memory is answered whatever is asked.
    for asked in [found["results"][-1]["id"], found["results"][0]["id"]]:
        memory = await call("get_memory", {"id": asked, "include": ["timeline", "links"]})
        same("the memory that was asked for is the one that is read", memory["id"], asked)
        genuine(memory)
        same("facts", memory["facts"], SAMPLES[asked]["facts"])
    first = found["results"][0]
    scopes = await call("list_scopes", {})
    holds("its scope is listed", first["scope"] in [scope["name"] for scope in scopes["scopes"]], scopes)
    context = await call("get_context", {"max_memories": 2})
    holds("the limit is kept", len(context["recent_memories"]) <= 2, context)
    for memory in context["recent_memories"] + context["cross_project_learnings"]:
        genuine(memory)
    of_scope = [memory for memory in SAMPLES.values() if memory["scope"] == first["scope"]]
    rejected = next(memory["id"] for memory in of_scope if memory["status"] == "rejected")

    for name, arguments, code in [
        ("query_memories", {"query": "x", "limit": 5000}, "invalid_argument"),
        ("query_memories", {"qeury": "x"}, "unknown_argument"),
        ("get_memory", {"id": "no-such-memory"}, "memory_not_found"),
        ("get_memory", {"id": rejected}, "memory_not_served"),
    ]:
        result = wire(await session.call_tool(name, arguments))
        same(f"{arguments} is an error", result.get("isError"), True)
        same(f"{arguments}: structure", result.get("structuredContent"), None)
        same(f"{arguments}: code", json.loads(result["content"][0]["text"])["code"], code)
    await refused("an unknown tool", session.call_tool("no_such_tool", {}), -32602)
    return first


async def resources(session, first, era):
    listed = [resource["uri"] for resource in wire(await session.list_resources())["resources"]]
    holds("the scopes are a resource", "memory://scopes" in listed, listed)
    templates = wire(await session.list_resource_templates())["resourceTemplates"]
    templates = [template["uriTemplate"] for template in templates]
    holds("memories have a template", "memory://scope/{name}/memory/{id}" in templates, templates)
    address = f"memory://scope/{first['scope']}/memory/{first['id']}"
    for uri in ["memory://scopes", f"memory://scope/{first['scope']}", address]:
        contents = wire(await session.read_resource(uri))["contents"]
        same("the address of what is read", contents[0]["uri"], uri)
        read = json.loads(contents[0]["text"])
        if uri == address:
            same("the resource is the memory of its address", read["id"], first["id"])
            genuine(read)
    missing = session.read_resource("memory://scope/no-such-scope")
    await refused("a resource that is not there", missing, -32002 if era == "initialize" else -32602)


async def prompts(session, first):

    listed = [prompt["name"] for prompt in wire(await session.list_prompts())["prompts"]]
    same("prompts", listed, ["recall"])
    filled = wire(await session.get_prompt("recall", {"query": first["title"]}))
    holds("recall quotes the memory", first["id"] in filled["messages"][0]["content"]["text"], filled)
    unseen = [id for id, memory in SAMPLES.items() if memory["status"] not in SERVED]
    holds("recall quotes nothing else", not any(id in json.dumps(filled) for id in unseen), filled)
    await refused("a prompt without its argument", session.get_prompt("recall", {}), -32602)


async def main(transport, era, target):
    token = os.environ["ACK_MEM_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"}
    if transport == "http":
        guarded(target[0], token)
    async with AsyncExitStack() as stack:
        connect = connect_1 if MAJOR == 1 else connect_2
        session, version, server, instructions = await connect(stack, transport, era, target, headers)
        same("version of the protocol", version, NEWEST[era])
        same("name of the server", server["name"], "ack-memory")
        holds("the instructions arrive", "query_memories" in (instructions or ""), instructions)
        first = await tools(session)
        await resources(session, first, era)
        await prompts(session, first)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
