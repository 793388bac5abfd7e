// The plan: heaps of unreviewed memories, each decided with one key.

// With fewer memories, one looks at each anyway.
const MIN_PLANNED = 12;
const WEEK = 7;

const plan = { title: "", left: "", prompts: 0, heaps: [], at: 0, turn: 0 };

const heapAt = () => plan.heaps[plan.at];

async function openPlan() {
  await loadPlan();
  if (plan.heaps.length === 0) {
    return closePlan();
  }
  if (state.screen !== "plan" && heapAt().done) {
    toNextHeap();
  }
  setScreen("plan");
  state.view.queue = "waiting";
  deselect();
  state.view.filter = by("filter").value = "";
  say("");
  showHead();
  showPlan();
  focusOn("plan-title");
  return window.scrollTo(0, 0);
}

/** Fetches the heaps. The chosen one stays chosen, wherever it stands now. */
async function loadPlan(split = null) {
  const chosen = heapAt()?.name;
  const { plan: found, summary } = await ask("plan", { turn: plan.turn, split });
  Object.assign(plan, found);
  state.summary = summary;
  const { heaps } = plan;
  const place = heaps.findIndex(
    ({ name }) => name === chosen || (split && chosen.startsWith(`${name}:`)),
  );
  plan.at = place >= 0 ? place : Math.max(0, Math.min(plan.at, heaps.length - 1));
}

/** Leaves the plan for the cards of a filter. */
async function closePlan(filter = "", queue = "waiting") {
  setScreen("cards");
  by("filter").value = filter;
  return changeView({ filter, queue });
}

function heapRow(heap, position) {
  const attributes = {
    type: "button",
    class: heap.done ? "heap done" : "heap",
    "aria-current": position === plan.at ? "true" : null,
    onclick: () => moveTo(position),
  };
  const cells = [
    span("count", String(heap.done ? heap.total : heap.waiting)),
    span("what", span("title", heap.title), span("of", heap.about)),
    plan.prompts > 0 ? missedCell(heap) : null,
    span("suggested", heap.does, keyHint(heap.key)),
  ];
  return item(element("button", attributes, ...cells));
}

/** How often past prompts would have found one of a heap. */
function missedCell({ missed, done }) {
  if (missed === null || done) {
    return span("missed");
  }
  const most = Math.max(...plan.heaps.map((heap) => heap.missed ?? 0), 1);
  const said = missed === 0 ? "not once: may wait" : counted(missed, "time", "times");
  const share = bar("of-most", missed, most);
  const track = element("span", { class: "track", "aria-hidden": "true" }, share);
  return span("missed", unseen("missed by agents: "), missed === 0 ? null : track, said);
}

const sampleEntry = ({ title, text, about }) =>
  item(
    element("p", { class: "title" }, title),
    text ? element("p", { class: "text" }, text) : null,
    element("p", { class: "of" }, about),
  );

function showPlan() {
  const heap = heapAt();
  by("plan-title").textContent = plan.title;
  // The order of the heaps, in a sentence.
  const asked = `how often your last ${counted(plan.prompts, "prompt", "prompts")}, asked again`;
  const order = `Projects are in order of need: ${asked}, would have found one of these.`;
  by("plan-about").textContent = plan.prompts > 0 ? order : "";
  by("plan-left").textContent = capitalised(plan.left);
  by("heap-names").hidden = plan.prompts === 0;
  const current = fillList("heaps", () => by("heaps").replaceChildren(...plan.heaps.map(heapRow)));
  current?.scrollIntoView({ block: "nearest" });
  const others = button("5 others", "n", () => inTurn(PLAN_KEYS.n), { class: "plain" });
  const more = heap.waiting > heap.sample.length && !heap.done;
  by("sample").replaceChildren(
    element("h2", { id: "sample-name" }, heap.title),
    element("p", { class: "small label" }, element("span", {}, heap.sampled), more ? others : ""),
    element("ol", { class: "sample" }, ...heap.sample.map(sampleEntry)),
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
  const bulk = [
    ["g", "Keep one of each group"],
    ["A", `Approve all ${count}`],
    ["R", `Reject all ${count}${why}`],
    ["h", "Snooze a week"],
  ];
  const shown = bulk.filter(([key]) => heap.name !== "flagged" && (key !== "g" || heap.key === "g"));
  shown.sort(([one], [other]) => (other === heap.key) - (one === heap.key));
  const keyed = [...shown, ["Enter", "One by one"]].map(([key, label]) =>
    button(label, key, () => inTurn(PLAN_KEYS[key]), key === heap.key ? { class: "main" } : {}),
  );
  const split = () => button(capitalised(heap.split), "→", () => inTurn(splitHeap));
  const all = button("All cards", "o", () => inTurn(() => closePlan()));
  return [...keyed, heap.split ? split() : "", all];
}

function moveTo(position) {
  plan.at = Math.max(0, Math.min(position, plan.heaps.length - 1));
  showPlan();
}

async function decideHeap(choice) {
  complain("");
  const answer = await ask("heap", { name: heapAt().name, choice });
  state.summary = answer.summary;
  await openPlan();
  say(answer.said);
  toNextHeap();
  return showPlan();
}

/** Chooses the next heap that is not decided, if there is one. */
function toNextHeap() {
  const isOpen = (heap) => !heap.done;
  const next = plan.heaps.findIndex((heap, position) => position > plan.at && isOpen(heap));
  plan.at = Math.max(next < 0 ? plan.heaps.findIndex(isOpen) : next, 0);
}

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
  g: () => decideHeap(null),
  s: () => {
    toNextHeap();
    return showPlan();
  },
  h: () => decideHeap({ do: "put_off", until: dayIn(WEEK) }),
  n: () => {
    plan.turn += 1;
    return openPlan();
  },
  o: () => closePlan(),
  X: () => openHeap().then(selectAll),
};
