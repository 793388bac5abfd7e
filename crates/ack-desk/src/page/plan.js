// The plan: heaps of memories that wait, each decided with one key.

// With fewer memories, one looks at each anyway.
const MIN_PLANNED = 12;
const WEEK = 7;

const plan = { heaps: [], at: 0, turn: 0, isOpen: false };

const heapAt = () => plan.heaps[plan.at];

/** Shows the plan in place of a card. */
async function openPlan({ keepMessage = false } = {}) {
  plan.heaps = await ask("plan", { turn: plan.turn });
  if (plan.heaps.length === 0) {
    return closePlan();
  }
  plan.at = Math.min(plan.at, plan.heaps.length - 1);
  plan.isOpen = true;
  state.view.filter = by("filter").value = "";
  document.body.dataset.screen = "plan";
  if (!keepMessage) {
    say("");
  }
  showHead();
  showRecent();
  showPlan();
  by("plan-title").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  return undefined;
}

/** Leaves the plan for the cards of a filter. */
async function closePlan(filter = "") {
  plan.isOpen = false;
  delete document.body.dataset.screen;
  by("filter").value = filter;
  return changeView({ filter, queue: "waiting" });
}

function heapRow(heap, position) {
  const held =
    heap.held_back > 0 ? ` · ${counted(heap.held_back, "flagged one", "flagged ones")} held back` : "";
  const about = heap.done ? `${capitalised(heap.done)}${held}` : `${heap.about}${held}`;
  const key = heap.done ? "z" : heap.suggested;
  const suggestion = {
    A: "approve",
    R: "reject",
    g: "keep one each",
    z: "undo",
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
      element(
        "span",
        { class: "suggested" },
        suggestion ?? "one by one",
        element("kbd", { "aria-hidden": "true" }, key ?? "Enter"),
      ),
    ),
  );
}

function showPlan() {
  const heap = heapAt();
  const total = plan.heaps.reduce((sum, heap) => sum + heap.total, 0);
  const decided = total - plan.heaps.reduce((sum, heap) => sum + heap.waiting, 0);
  const left = plan.heaps.filter((heap) => !heap.done).length;
  by("plan-title").textContent =
    `${counted(total, "memory waits", "memories wait")}, in ${counted(plan.heaps.length, "heap", "heaps")}`;
  by("plan-about").textContent =
    left === 0
      ? "Every heap is decided: c writes the decisions."
      : `${decided} of ${total} decided, ${counted(left, "heap", "heaps")} left.`;
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
    element(
      "p",
      { class: "small" },
      `${lines.length} of ${heap.done ? heap.total : heap.waiting}, from the newest to the oldest`,
    ),
    element("ol", {}, ...lines),
    more ? button("Others", "n", () => inTurn(othersOfHeap)) : "",
  );
  by("plan-actions").replaceChildren(...heapButtons(heap));
}

function heapButtons(heap) {
  if (heap.done) {
    return [button("Undo", "z", () => inTurn(() => takeBack()))];
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
    say("It is decided already; z takes it back.");
    return undefined;
  }
  if (heap.name === "flagged") {
    say("Flagged memories are decided one by one: Enter opens them.");
    return undefined;
  }
  complain("");
  const reason = choice?.do === "reject" ? heap.reason : null;
  const answer = await ask("heap", { name: heap.name, choice, reason });
  setSummary(answer.summary);
  prefetched.clear();
  const left = answer.summary.head.waiting;
  say(`${capitalised(answer.done)}: ${answer.count} of ${heap.title}. ${left} left.`);
  await openPlan({ keepMessage: true });
  const next = plan.heaps.findIndex((heap, position) => position > plan.at && !heap.done);
  moveTo(next < 0 ? plan.heaps.findIndex((heap) => !heap.done) : next);
  return undefined;
}

/** Shows the heap whose decision was undone. */
async function backOnPlan() {
  const before = new Set(plan.heaps.filter((heap) => heap.done).map((heap) => heap.name));
  await openPlan({ keepMessage: true });
  const back = plan.heaps.findIndex((heap) => before.has(heap.name) && !heap.done);
  moveTo(back < 0 ? plan.at : back);
}

function putOffHeap() {
  const until = new Date(Date.now() + WEEK * 86_400_000).toISOString().slice(0, 10);
  return decideHeap({ do: "put_off", until });
}

const openHeap = () => closePlan(`heap:${heapAt().name}`);

async function othersOfHeap() {
  plan.turn += 1;
  await openPlan();
}

const PLAN_KEYS = {
  j: () => moveTo(plan.at + 1),
  ArrowDown: () => moveTo(plan.at + 1),
  k: () => moveTo(plan.at - 1),
  ArrowUp: () => moveTo(plan.at - 1),
  Enter: () => openHeap(),
  A: () => decideHeap({ do: "approve" }),
  R: () => decideHeap({ do: "reject" }),
  g: () => (heapAt().suggested === "g" ? decideHeap(null) : say("There are no groups in it.")),
  h: () => putOffHeap(),
  n: () => othersOfHeap(),
  o: () => closePlan(),
};
