// What the page asks the server, and what it remembers.

const TOKEN = "ack-memory-desk";
const WINDOW = 60;

const NOTHING_SELECTED = { count: 0, said: "", sample: [], sampled: "" };

// A card about which nothing is known yet.
const NOTHING_FOUND = {
  near: null,
  evidence: null,
  current: 0,
  nearUnfolded: false,
  isWithout: false,
  // The text of the memory, if it is unfolded.
  whole: null,
};

const state = {
  // The plan, the cards or the closing screen.
  screen: "cards",
  // Whether the closing screen was shown since the last save.
  closingSeen: false,
  view: { filter: "", queue: "waiting", last_decided: false },
  shown: null,
  summary: null,
  queue: null,
  ...NOTHING_FOUND,
  // What changes for agents: undefined while it is looked for, null if that is not known.
  next: undefined,
  // The numbers of the selected memories, and what A and R would decide about.
  selected: new Set(),
  selection: NOTHING_SELECTED,
  reasons: [],
  over: false,
  singleKeys: true,
};

const by = (id) => document.getElementById(id);

/** An element with attributes and children; text is always text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") {
      made.addEventListener("click", value);
    } else if (value !== undefined && value !== null && value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const buttons = (...all) => element("div", { class: "buttons" }, ...all);
const item = (...children) => element("li", {}, ...children);
const span = (name, ...children) => element("span", { class: name }, ...children);
const small = (text) => element("p", { class: "small" }, text);
/** For those who hear the page. */
const unseen = (text) => span("unseen", text);
/** The part of a track that is a share of it. */
function bar(name, part, whole) {
  const made = span(name);
  made.style.width = `${(100 * part) / whole}%`;
  return made;
}

const keyHint = (key) => element("kbd", { "aria-hidden": "true" }, key);

/** A list, an entry for each text or element. */
const listOf = (entries, attributes) =>
  element("ul", attributes, ...entries.map((entry) => item(entry)));

function button(label, key, onclick, attributes = {}) {
  const all = { type: "button", "aria-keyshortcuts": key, ...attributes, onclick };
  return element("button", all, label, key ? keyHint(key) : null);
}

const joined = (parts) => parts.filter(Boolean).join(" · ");
const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;
const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const days = (count) => (count === null ? "" : counted(count, "day", "days"));
const dayIn = (count) => new Date(Date.now() + count * 86_400_000).toISOString().slice(0, 10);

/** Says what happened, to those who see and to those who hear. */
function say(text) {
  by("said").textContent = text;
}

function setScreen(name) {
  state.screen = name;
  by("closing").hidden = name !== "closing";
  if (name === "cards") {
    delete document.body.dataset.screen;
  } else {
    document.body.dataset.screen = name;
  }
}

/** Moves the focus, but not while a filter is typed: its letters would be keys. */
function focusOn(id) {
  if (document.activeElement !== by("filter")) {
    by(id).focus({ preventScroll: true });
  }
}

function complain(text) {
  by("alarm").textContent = text;
}

/** The server does not answer: it has ended. */
function showServerGone() {
  const chosen = state.summary?.head.chosen ?? 0;
  state.over = true;
  const unsaved = `${counted(chosen, "decision is", "decisions are")} not saved. `;
  const next = "Run `ack-memory review`: it names the file if the desk could keep them in one.";
  complain(
    `The desk has ended. ${chosen > 0 ? unsaved + next : "Run `ack-memory review` to go on."}`,
  );
  for (const control of document.querySelectorAll("button, input")) {
    control.disabled = true;
  }
}

async function ask(path, body = {}) {
  if (state.over) {
    throw new Error("over");
  }
  let response;
  try {
    response = await fetch(`/${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${sessionStorage.getItem(TOKEN) ?? ""}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
  } catch (error) {
    if (!state.over) {
      showServerGone();
    }
    throw error;
  }
  const answer = await response.json();
  if (!response.ok) {
    complain(answer.error);
    throw new Error(answer.error);
  }
  return answer;
}

const card = (number) => ask("card", { number, view: state.view });

// Keys may come faster than answers: each acts on what stands there when its turn comes.
let turn = Promise.resolve();
let turns = 0;
function inTurn(act) {
  const page = document.documentElement;
  turns += 1;
  page.dataset.busy = "";
  turn = turn
    .then(act)
    .catch(() => undefined)
    .finally(() => {
      turns -= 1;
      if (turns === 0) {
        delete page.dataset.busy;
      }
    });
  return turn;
}
