// The plan: heaps of memories that wait, each decided with one key.

// With fewer memories, one looks at each anyway.
const MIN_PLANNED = 12;
const WEEK = 7;

const plan = { heaps: [], left: null, prompts: 0, at: 0, turn: 0, isOpen: false };

const heapAt = () => plan.heaps[plan.at];

/** Shows the plan in place of a card. */
async function openPlan({ keepMessage = false } = {}) {
  await loadPlan();
  if (plan.heaps.length === 0) {
    return closePlan();
  }
  if (!plan.isOpen && heapAt().done) {
    toNextHeap();
  }
  plan.isOpen = true;
  state.view.queue = "waiting";
  state.selected.clear();
  state.view.filter = by("filter").value = "";
  document.body.dataset.screen = "plan";
  if (!keepMessage) {
    say("");
  }
  showHead();
  showRecent();
  showPlan();
  focusOn("plan-title");
  return window.scrollTo(0, 0);
}

/** Fetches the heaps. The chosen one stays chosen, wherever it stands now. */
async function loadPlan(split = null) {
  const chosen = heapAt()?.name;
  const { heaps, left, prompts, summary } = await ask("plan", { turn: plan.turn, split });
  Object.assign(plan, { heaps, left, prompts });
  setSummary(summary);
  const place = heaps.findIndex(
    ({ name }) => name === chosen || (split && chosen.startsWith(`${name}:`)),
  );
  plan.at = place >= 0 ? place : Math.max(0, Math.min(plan.at, heaps.length - 1));
}

/** Leaves the plan for the cards of a filter. */
async function closePlan(filter = "", queue = "waiting") {
  plan.isOpen = false;
  delete document.body.dataset.screen;
  by("closing").hidden = true;
  by("filter").value = filter;
  return changeView({ filter, queue });
}

function heapRow(heap, position) {
  const held =
    heap.held_back > 0 ? ` · ${counted(heap.held_back, "flagged one", "flagged ones")} held back` : "";
  const about = heap.done ? `${capitalised(heap.done)}${held}` : `${heap.about}${held}`;
  const key = heap.is_saved ? "✓" : heap.done ? "u" : heap.suggested;
  const suggestion = {
    A: "approve",
    R: "reject",
    g: "keep one each",
    h: "snooze",
    u: "undo",
    "✓": "saved",
  }[key];
  return element(
    "li",
    {},
    element(
      "button",
      {
        type: "button",
        class: heap.done ? "heap done" : "heap",
        "aria-current": position === plan.at ? "true" : null,
        onclick: () => moveTo(position),
      },
      element("span", { class: "count" }, String(heap.done ? heap.total : heap.waiting)),
      element(
        "span",
        { class: "what" },
        element("span", { class: "title" }, heap.title),
        element("span", { class: "of" }, about),
      ),
      plan.prompts > 0 ? missedCell(heap) : null,
      element(
        "span",
        { class: "suggested" },
        suggestion ?? "one by one",
        element("kbd", { "aria-hidden": "true" }, key ?? "Enter"),
      ),
    ),
  );
}

/** How often past prompts would have found one of a heap. */
function missedCell({ missed, done }) {
  if (missed === null || done) {
    return element("span", { class: "missed" });
  }
  const most = Math.max(...plan.heaps.map((heap) => heap.missed ?? 0), 1);
  const bar = element("span", { class: "of-most" });
  bar.style.width = `${(100 * missed) / most}%`;
  const said = missed === 0 ? "not once: may wait" : counted(missed, "time", "times");
  const track = element("span", { class: "track", "aria-hidden": "true" }, bar);
  const label = element("span", { class: "unseen" }, "missed by agents: ");
  return element("span", { class: "missed" }, label, missed === 0 ? null : track, said);
}

/** What is left, and the order of the heaps, in two sentences. */
function aboutPlan() {
  const { keys, cards, minutes } = plan.left;
  const parts = [
    keys > 0 ? counted(keys, "key", "keys") : null,
    cards > 0 ? counted(cards, "card", "cards") : null,
  ].filter(Boolean);
  const left =
    parts.length > 0
      ? `${parts.join(" and ")} left, about ${Math.max(1, minutes)} min.`
      : state.summary.head.chosen > 0
        ? "Every heap is decided: c saves the decisions."
        : "Nothing is unreviewed any more.";
  const order =
    plan.prompts > 0
      ? ` Projects are in order of need: how often your last ${counted(plan.prompts, "prompt", "prompts")}, asked again, would have found one of these.`
      : "";
  return left + order;
}

function showPlan() {
  const heap = heapAt();
  const total = plan.heaps.reduce((sum, heap) => sum + heap.total, 0);
  by("plan-title").textContent =
    `${counted(total, "unreviewed memory", "unreviewed memories")}, in ${counted(plan.heaps.length, "heap", "heaps")}`;
  by("plan-about").textContent = aboutPlan();
  const list = by("heaps");
  const held = list.contains(document.activeElement);
  list.replaceChildren(...plan.heaps.map(heapRow));
  const current = list.querySelector("[aria-current]");
  current?.scrollIntoView({ block: "nearest" });
  if (held) {
    current?.focus();
  }
  const lines = heap.sample.map((one) =>
    element(
      "li",
      {},
      element("p", { class: "title" }, one.title),
      one.text ? element("p", { class: "text" }, one.text) : null,
      element("p", { class: "of" }, one.about),
    ),
  );
  const more = heap.waiting > lines.length && !heap.done;
  by("sample").replaceChildren(
    element("h2", { id: "sample-name" }, heap.title),
    element("p", { class: "small" }, heap.sampled),
    element("ol", {}, ...lines),
    more ? button("Others", "n", () => inTurn(othersOfHeap)) : "",
  );
  by("plan-actions").replaceChildren(...heapButtons(heap));
}

function heapButtons(heap) {
  if (heap.is_saved) {
    return [];
  }
  if (heap.done) {
    return [button("Undo", "u", () => inTurn(() => takeBack()))];
  }
  const count = heap.waiting;
  const why = heap.reason ? `: ${heap.reason}` : "";
  const bulk = {
    g: ["Keep one of each group", () => decideHeap(null)],
    A: [`Approve all ${count}`, () => decideHeap({ do: "approve" })],
    R: [`Reject all ${count}${why}`, () => decideHeap({ do: "reject" })],
    h: ["Snooze for a week", () => putOffHeap()],
  };
  const keys = heap.name === "flagged" ? [] : Object.keys(bulk);
  const shown = keys.filter((key) => key !== "g" || heap.suggested === "g");
  shown.sort((one, other) => (other === heap.suggested) - (one === heap.suggested));
  return [
    ...shown.map((key) => {
      const [label, act] = bulk[key];
      const main = key === heap.suggested ? { class: "main" } : {};
      return button(label, key, () => inTurn(act), main);
    }),
    button("One by one", "Enter", () => inTurn(openHeap), heap.suggested ? {} : { class: "main" }),
    heap.split ? button(capitalised(heap.split), "→", () => inTurn(splitHeap)) : "",
    button("All cards", "o", () => inTurn(() => closePlan())),
  ];
}

function moveTo(position) {
  plan.at = Math.max(0, Math.min(position, plan.heaps.length - 1));
  showPlan();
}

async function decideHeap(choice) {
  const heap = heapAt();
  if (heap.done) {
    return say(heap.is_saved ? "It is saved already." : "It is decided already; u undoes it.");
  }
  if (heap.name === "flagged") {
    return say("Flagged memories are decided one by one: Enter opens them.");
  }
  complain("");
  const reason = choice?.do === "reject" ? heap.reason : null;
  const answer = await ask("heap", { name: heap.name, choice, reason });
  setSummary(answer.summary);
  prefetched.clear();
  sayDone(`${answer.done}${reason ? ` (${reason})` : ""}: ${answer.count} of ${heap.title}`);
  await openPlan({ keepMessage: true });
  toNextHeap();
  return showPlan();
}

/** Chooses the next heap that is not decided, if there is one. */
function toNextHeap() {
  const isOpen = (heap) => !heap.done;
  const next = plan.heaps.findIndex((heap, position) => position > plan.at && isOpen(heap));
  plan.at = Math.max(next < 0 ? plan.heaps.findIndex(isOpen) : next, 0);
}

/** Shows the heap whose decision was undone. */
async function backOnPlan() {
  const before = new Set(plan.heaps.filter((heap) => heap.done).map((heap) => heap.name));
  await openPlan({ keepMessage: true });
  const back = plan.heaps.findIndex((heap) => before.has(heap.name) && !heap.done);
  moveTo(back < 0 ? plan.at : back);
}

const putOffHeap = () => decideHeap({ do: "put_off", until: dayIn(WEEK) });

const openHeap = () => closePlan(`heap:${heapAt().name}`);

async function splitHeap() {
  const heap = heapAt();
  if (!heap.split) {
    return say("Only a project, or what is older than a year, is split: if it has several types.");
  }
  await loadPlan(heap.name);
  say("");
  return showPlan();
}

function othersOfHeap() {
  plan.turn += 1;
  return openPlan();
}

const PLAN_KEYS = {
  j: () => moveTo(plan.at + 1),
  ArrowDown: () => moveTo(plan.at + 1),
  k: () => moveTo(plan.at - 1),
  ArrowUp: () => moveTo(plan.at - 1),
  Enter: () => openHeap(),
  ArrowRight: () => splitHeap(),
  ">": () => splitHeap(),
  A: () => decideHeap({ do: "approve" }),
  R: () => decideHeap({ do: "reject" }),
  g: () => (heapAt().suggested === "g" ? decideHeap(null) : say("There are no groups in it.")),
  h: () => putOffHeap(),
  n: () => othersOfHeap(),
  o: () => closePlan(),
  X: () => openHeap().then(selectAll),
};
