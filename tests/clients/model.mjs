// A scripted model on the loopback address, in the languages that clients speak to theirs: Anthropic's messages, OpenAI's responses
// and chat completions, Gemini's contents. It knows one thing to do: where the memory's query tool is offered, it calls it, and says
// that it is done when the result is there. Every request is kept, as it came and as what all four languages have in common.

import { createServer } from "node:http";

import { QUESTION } from "./samples.mjs";


export const DONE = "The memory was asked.";
/** What a person says to the client, for the first, second, … time. */
export const prompt = (turn) => `The container was killed with exit code 137, SIGKILL. Ask the memory. This is turn ${turn} of ours.`;
const PROMPT = /This is turn \d+ of ours\./;
/** And what has something else done. */
export const writing = (path) => `Write the file ${path} now. This is turn 9 of ours.`;
export const failing = (script) => `Run the script ${script} twice. This is turn 9 of ours.`;
export const delegating = "Have a subagent do it. This is turn 9 of ours.";
/** What a subagent is told. */
export const TASK = "Do what a subagent does.";
const patch = (path) => `*** Begin Patch\n*** Add File: ${path}\n+x\n*** End Patch\n`;
const inCode = (call, args) => `text(await tools.${call}(${JSON.stringify(args)}));`;
const shell = (script) => ({ command: `sh ${script}`, description: "Runs it" });
const running = {
  Bash: shell,
  bash: shell,
  run_shell_command: (script) => ({ ...shell(script), is_background: false }),
  exec: (script) => inCode("exec_command", { cmd: `sh ${script}` }),
};
const agent = () => ({ description: "Does it", prompt: TASK, subagent_type: "general-purpose", run_in_background: false });
/** What is called for each, one call after the other: by the tool that a client has for it, with its arguments. */
const ERRANDS = [
  {
    asked: /Write the file (\S+) now\./,
    calls: [
      {
        Write: (path) => ({ file_path: path, content: "x" }),
        create: (path) => ({ path, file_text: "x" }),
        exec: (path) => inCode("apply_patch", patch(path)),
      },
    ],
  },
  { asked: /Run the script (\S+) twice\./, calls: [running, running] },
  {
    asked: /Have a subagent do it\./,
    calls: [
      { Agent: agent, agent, spawn_agent: () => ({ task_name: "it", message: TASK, fork_turns: "none" }) },
      { wait_agent: () => ({ timeout_ms: 10_000 }) },
    ],
  },
];
const TOOL = "query_memories";
/** A client that offers tools by name alone has one that fetches their schemas, */
const SEARCH = /^(ToolSearch|tool_search)$/;
/** one that calls them, */
const BRIDGE = "tool_call";
/** or one that runs a program in which all of them are functions. */
const PROGRAM = "exec";

const list = (value) => (Array.isArray(value) ? value : []);
const text = (value) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));

// ---- What a request says, whatever its language: the offered tools, and what was said and answered since the last prompt.

/**
 * A request. `tools`: what is offered, by name, with the tool as it was described and the namespace it lies in, if any.
 * `turns`: the conversation, each `{ role: "system" | "user" | "model" | "result", text, name? }`.
 */
const readers = {
  messages(body) {
    const system = list(body.system).map((part) => ({ role: "system", text: part.text }));
    if (typeof body.system === "string") {
      system.push({ role: "system", text: body.system });
    }
    const turns = list(body.messages).flatMap(({ role, content }) => {
      const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
      return parts.map((part) => {
        switch (part.type) {
          case "tool_use":
            return { role: "model", text: text(part.input), name: part.name };
          case "tool_result":
            return { role: "result", text: text(part.content), id: part.tool_use_id };
          default:
            return { role: role === "assistant" ? "model" : role, text: text(part.text) };
        }
      });
    });
    return { tools: list(body.tools).map((tool) => ({ name: tool.name, tool })), turns: [...system, ...turns] };
  },

  responses(body) {
    const more = list(body.input).flatMap((item) => (item.type === "additional_tools" ? item.tools : list(item.type === "tool_search_output" && item.tools)));
    const tools = [...list(body.tools), ...more].flatMap((tool) =>
      tool.type === "namespace"
        ? list(tool.tools).map((inner) => ({ name: inner.name, namespace: tool.name, tool: inner }))
        : [{ name: tool.name ?? tool.type, tool }],
    );
    const turns = list(body.input).flatMap((item) => {
      switch (item.type) {
        case "message":
        case undefined: {
          const role = { assistant: "model", developer: "system" }[item.role] ?? item.role;
          return (typeof item.content === "string" ? [{ text: item.content }] : list(item.content)).map((part) => ({
            role,
            text: text(part.text),
          }));
        }
        case "function_call_output":
        case "custom_tool_call_output":
        case "tool_search_output":
          return [{ role: "result", text: text(item.output ?? item.tools) }];
        case "additional_tools":
          return [];
        case "tool_search_call":
          return [{ role: "model", text: text(item.arguments), name: "tool_search" }];
        default:
          return [{ role: "model", text: text(item.arguments ?? item.input ?? item.content), name: item.name }];
      }
    });
    return { tools, turns: [{ role: "system", text: text(body.instructions) }, ...turns] };
  },

  chat(body) {
    const turns = list(body.messages).flatMap(({ role, content, tool_calls }) => {
      const parts = typeof content === "string" ? [content] : list(content).map((part) => text(part.text));
      const as = { assistant: "model", developer: "system", tool: "result" }[role] ?? role;
      const said = parts.map((part) => ({ role: as, text: part }));
      return [...said, ...list(tool_calls).map((call) => ({ role: "model", text: call.function.arguments, name: call.function.name }))];
    });
    return { tools: list(body.tools).map(({ function: tool }) => ({ name: tool?.name, tool })), turns };
  },

  contents(body) {
    const system = list(body.systemInstruction?.parts).map((part) => ({ role: "system", text: text(part.text) }));
    const turns = list(body.contents).flatMap(({ role, parts }) =>
      list(parts).map((part) => {
        if (part.functionCall) {
          return { role: "model", text: text(part.functionCall.args), name: part.functionCall.name };
        }
        if (part.functionResponse) {
          return { role: "result", text: text(part.functionResponse.response) };
        }
        return { role: role === "model" ? "model" : "user", text: text(part.text) };
      }),
    );
    const tools = list(body.tools).flatMap((tool) => list(tool.functionDeclarations));
    return { tools: tools.map((tool) => ({ name: tool.name, tool })), turns: [...system, ...turns] };
  },
};

/** The tool's whole name, as far as the conversation tells it. */
const named = (turns) => turns.flatMap((turn) => turn.text.match(/\w[\w-]*__query_memories/) ?? [])[0] ?? TOOL;

/** What is said next: a text, or a call of a tool with its arguments. */
function next({ tools, turns }) {
  const start = turns.findLastIndex((turn) => turn.role === "user" && PROMPT.test(turn.text));
  const since = turns.slice(start + 1);
  const called = since.filter((turn) => turn.role === "model" && turn.name).map((turn) => turn.name);
  const asked = { query: QUESTION, limit: 3 };
  const offered = (known) => tools.find(({ name }) => name && known(name));
  const direct = offered((name) => name.endsWith(TOOL));
  const search = offered((name) => SEARCH.test(name));
  const bridge = offered((name) => name === BRIDGE);
  const program = offered((name) => name === PROGRAM);
  const errand = ERRANDS.find(({ asked }) => asked.test(turns[start]?.text));
  if (errand) {
    const known = errand.calls[called.length] ?? {};
    const call = offered((name) => Object.hasOwn(known, name));
    return call ? { call, args: known[call.name](turns[start].text.match(errand.asked)[1]) } : { say: DONE };
  }
  if (called.some((name) => name.endsWith(TOOL) || name === BRIDGE || name === PROGRAM)) {
    return { say: DONE };
  }
  if (direct) {
    return { call: direct, args: asked };
  }
  if (program) {
    const args = JSON.stringify(asked);
    return { call: program, args: `const tool = ALL_TOOLS.find(({ name }) => name.endsWith("${TOOL}"));\ntext(await tools[tool.name](${args}));` };
  }
  if (search && !called.some((name) => SEARCH.test(name))) {
    return { call: search, args: { query: search.tool.type === "tool_search" ? TOOL : `select:${named(turns)}` } };
  }
  if (bridge) {
    return { call: bridge, args: { name: named(turns), arguments: asked } };
  }
  return { say: tools.length > 0 ? DONE : "A title" };
}

// ---- How it is said.

const event = (response, data, name) => response.write(`${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`);

/** A call in the language of responses, which has three kinds of it. */
function called({ name, namespace, tool }, args, number) {
  const common = { call_id: `call_${number}`, ...(namespace && { namespace }) };
  switch (tool.type) {
    case "custom":
      return { ...common, type: "custom_tool_call", name, input: args };
    case "tool_search":
      return { ...common, type: "tool_search_call", execution: "client", arguments: args };
    default:
      return { ...common, type: "function_call", name, arguments: JSON.stringify(args) };
  }
}

const writers = {
  messages(response, body, { say, call, args }, number) {
    const usage = { input_tokens: 10, output_tokens: 10 };
    const block = call ? { type: "tool_use", id: `toolu_${number}`, name: call.name, input: args } : { type: "text", text: say };
    const message = { id: `msg_${number}`, type: "message", role: "assistant", model: body.model, content: [block], usage };
    message.stop_reason = call ? "tool_use" : "end_turn";
    message.stop_sequence = null;
    if (!body.stream) {
      return response.json(message);
    }
    const send = (type, data) => event(response, { type, ...data }, type);
    response.stream();
    send("message_start", { message: { ...message, content: [], stop_reason: null } });
    const empty = call ? { ...block, input: {} } : { ...block, text: "" };
    send("content_block_start", { index: 0, content_block: empty });
    const delta = call ? { type: "input_json_delta", partial_json: JSON.stringify(args) } : { type: "text_delta", text: say };
    send("content_block_delta", { index: 0, delta });
    send("content_block_stop", { index: 0 });
    send("message_delta", { delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage });
    send("message_stop", {});
    response.end();
  },

  responses(response, body, { say, call, args }, number) {
    const item = call ? called(call, args, number) : { type: "message", role: "assistant", content: [{ type: "output_text", text: say, annotations: [] }] };
    item.id = `item_${number}`;
    item.status = "completed";
    const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20, input_tokens_details: null, output_tokens_details: null };
    const whole = { id: `resp_${number}`, object: "response", status: "completed", model: body.model, output: [item], usage };
    if (!body.stream) {
      return response.json(whole);
    }
    const send = (type, data) => event(response, { type, ...data }, type);
    response.stream();
    send("response.created", { response: { ...whole, status: "in_progress", output: [], usage: null } });
    send("response.output_item.added", { output_index: 0, item });
    send("response.output_item.done", { output_index: 0, item });
    send("response.completed", { response: whole });
    response.end();
  },

  chat(response, body, { say, call, args }, number) {
    const calls = call && [{ index: 0, id: `call_${number}`, type: "function", function: { name: call.name, arguments: JSON.stringify(args) } }];
    const message = call ? { role: "assistant", content: null, tool_calls: calls } : { role: "assistant", content: say };
    const ended = call ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    const about = { id: `chat_${number}`, created: 1, model: body.model };
    if (!body.stream) {
      return response.json({ ...about, object: "chat.completion", choices: [{ index: 0, message, finish_reason: ended }], usage });
    }
    const send = (choices, more) => event(response, { ...about, object: "chat.completion.chunk", choices, ...more });
    response.stream();
    send([{ index: 0, delta: message, finish_reason: null }]);
    send([{ index: 0, delta: {}, finish_reason: ended }]);
    send([], { usage });
    response.write("data: [DONE]\n\n");
    response.end();
  },

  contents(response, body, { say, call, args }, number, path) {
    const part = call ? { functionCall: { name: call.name, args, id: `call_${number}` } } : { text: say };
    const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 };
    const answer = { candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }], usageMetadata };
    if (!path.includes(":streamGenerateContent")) {
      return response.json(answer);
    }
    response.stream();
    event(response, answer);
    response.end();
  },
};

/** The language that a path belongs to. */
function language(path) {
  const ends = [
    [/\/messages$/, "messages"],
    [/\/responses$/, "responses"],
    [/\/chat\/completions$/, "chat"],
    [/:(stream)?[gG]enerateContent$/, "contents"],
  ];
  return ends.find(([end]) => end.test(path))?.[1];
}

async function whole(request) {
  const parts = [];
  for await (const part of request) {
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/**
 * Starts the model: `url`; `requests`, each `{ path, body, tools, turns }` as they come in, those for a turn of the conversation; and
 * `others`, paths that were asked for besides.
 */
export async function model() {
  const requests = [];
  const others = [];
  const server = createServer(async (request, response) => {
    const path = request.url.split("?")[0];
    response.json = (value) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    response.stream = () => response.writeHead(200, { "content-type": "text/event-stream" });
    const spoken = request.method === "POST" && language(path);
    const sent = await whole(request);
    if (!spoken) {
      others.push(`${request.method} ${path}`);
      if (path.endsWith("/models")) {
        return response.json({ object: "list", data: [{ id: "scripted", object: "model" }], models: [] });
      }
      if (/count_?[tT]okens$/.test(path)) {
        return response.json({ input_tokens: 10, totalTokens: 10 });
      }
      return response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"not here"}}');
    }
    const body = JSON.parse(sent);
    const view = readers[spoken](body);
    requests.push({ path, body, ...view });
    writers[spoken](response, body, next(view), requests.length, path);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, requests, others, close: () => server.close() };
}
