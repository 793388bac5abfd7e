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
from contextlib import AsyncExitStack

NEWEST = {"initialize": "2025-11-25", "discover": "2026-07-28"}
TOOLS = ["get_context", "get_memory", "list_scopes", "query_memories"]
MAJOR = int(importlib.metadata.version("mcp").split(".")[0])


def wire(model):
    """What a model of the client looks like in a message."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def same(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def holds(what, condition, found):
    if not condition:
        raise AssertionError(f"{what}: {str(found)[:600]}")


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
        same(f"{name}: text and structure", json.loads(result["content"][0]["text"]), answer)
        return answer

    found = await call("query_memories", {"query": "prepared statements behind a connection pool", "limit": 3})
    holds("something is found, within the limit", 0 < len(found["results"]) <= 3, found)
    first = found["results"][0]
    memory = await call("get_memory", {"id": first["id"], "include": ["timeline", "links"]})
    holds("the memory that was found is the one that is read", first["title"] in json.dumps(memory), memory)
    scopes = await call("list_scopes", {})
    holds("its scope is listed", first["scope"] in [scope["name"] for scope in scopes["scopes"]], scopes)
    context = await call("get_context", {"max_memories": 2})
    holds("the limit is kept", len(context["recent_memories"]) <= 2, context)

    for name, arguments, code in [
        ("query_memories", {"query": "x", "limit": 5000}, "invalid_argument"),
        ("query_memories", {"qeury": "x"}, "unknown_argument"),
        ("get_memory", {"id": "no-such-memory"}, "memory_not_found"),
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
        json.loads(contents[0]["text"])
    missing = session.read_resource("memory://scope/no-such-scope")
    await refused("a resource that is not there", missing, -32002 if era == "initialize" else -32602)


async def prompts(session, first):
    import mcp.types as types

    listed = [prompt["name"] for prompt in wire(await session.list_prompts())["prompts"]]
    same("prompts", listed, ["curate_pending", "recall"])
    filled = wire(await session.get_prompt("recall", {"query": first["title"]}))
    holds("recall quotes the memory", first["id"] in filled["messages"][0]["content"]["text"], filled)
    await session.get_prompt("curate_pending", {})
    await refused("a prompt without its argument", session.get_prompt("recall", {}), -32602)
    template = types.ResourceTemplateReference(type="ref/resource", uri="memory://scope/{name}")
    half = {"name": "name", "value": first["scope"][:3]}
    completed = wire(await session.complete(template, half))["completion"]["values"]
    holds("a scope's name is completed", first["scope"] in completed, completed)


async def main(transport, era, target):
    token = os.environ.get("ACK_MEM_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
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
