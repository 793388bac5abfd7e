// What can be done, and the keys that do it.

const UNHURRIED = 150;
const NO_SIMILAR = "No other unreviewed memory is much like it.";

async function show(number) {
  if (number === null || number === undefined) {
    showEnd();
    return refresh();
  }
  const shown = await card(number);
  Object.assign(state, NOTHING_FOUND, { shown, next: shown.approved ? null : undefined });
  showCard();
  showNear();
  showNext();
  showActions();
  say("");
  focusOn("title");
  window.scrollTo(0, 0);
  load("evidence", "evidence", showEvidence);
  load("near", "near", showNear);
  // Nobody who goes through the cards fast looks at it.
  const isWaited = () => state.shown?.number === number && state.next === undefined;
  setTimeout(() => isWaited() && load("session", "next", showNext), UNHURRIED);
  return refresh();
}

/** Asks for a part of the card, and shows it if the card still stands there. */
async function load(path, part, show) {
  const { number } = state.shown;
  const found = await ask(path, { number }).catch(() => undefined);
  if (found !== undefined && state.shown?.number === number && !state.over) {
    state[part] = found;
    show();
  }
}

/** Fetches the part of the queue around the memory. Nothing waits for it. */
function refresh() {
  const around = state.shown?.number ?? null;
  const show = (queue) => {
    state.queue = queue;
    showRail();
  };
  ask("queue", { view: state.view, around, count: WINDOW }).then(show).catch(() => undefined);
  showHead();
}

async function choose(choice, { numbers = [state.shown.number], reason, together = false } = {}) {
  complain("");
  const answer = await ask("choose", { numbers, choice, reason, together, view: state.view });
  state.summary = answer.summary;
  if (state.selected.size > 0) {
    numbers.forEach((number) => state.selected.delete(number));
    await countSelected();
  }
  await (answer.next === null && isHeap() ? openPlan() : show(answer.next));
  return say(answer.said);
}

async function takeBack(key) {
  complain("");
  const answer = await ask("back", { key });
  state.summary = answer.summary;
  if (answer.numbers.length === 0) {
    say("Nothing to undo here; `ack-memory undo` takes back what was saved.");
    return refresh();
  }
  if (state.screen === "plan") {
    await openPlan();
    moveTo(plan.heaps.findIndex(({ name }) => name === answer.heap));
  } else {
    await show(answer.numbers[0]);
  }
  return say("Undone.");
}

async function move(step) {
  const number = step > 0 ? state.shown?.next : state.shown?.previous;
  if (number === null || number === undefined) {
    return say(step > 0 ? "That was the last one." : "That was the first one.");
  }
  return show(number);
}

/** Approves the memory that is shown; those that are much alike become its duplicates. */
const keepOne = () => choose(null);

/** Selects the memory and goes on, or takes it out of the selection. */
async function select() {
  const { number, next } = state.shown;
  if (!state.selected.delete(number)) {
    state.selected.add(number);
    if (next !== null) {
      await show(next);
    }
  }
  return showSelection();
}

async function selectAll() {
  const { numbers } = await ask("matching", { view: state.view });
  state.selected = new Set(numbers);
  return showSelection();
}

function deselect() {
  state.selected.clear();
  state.selection = NOTHING_SELECTED;
}

function clearSelection() {
  deselect();
  return showSelection();
}

/** Asks what A and R would decide about: what is flagged is decided one by one. */
async function countSelected() {
  const numbers = [...state.selected];
  state.selection = numbers.length > 0 ? await ask("selection", { numbers }) : NOTHING_SELECTED;
}

async function showSelection() {
  await countSelected();
  say(state.selected.size > 0 ? `${state.selection.said}.` : "Nothing is selected.");
  if (state.shown) {
    showActions();
  }
  showRail();
}

async function unfold() {
  const { number, text } = state.shown;
  if (text.more_lines === 0) {
    return;
  }
  state.whole = state.whole ? null : await ask("text", { number });
  showCard();
  by("title").focus({ preventScroll: true });
}

const nextNear = () => (state.current + 1) % (state.near?.length || 1);

function markNext(position = nextNear()) {
  if (state.near?.length > 1) {
    state.current = position;
    state.nearUnfolded = false;
    showNear();
    say(`Marked: ${state.near[state.current].title}`);
  }
}

function unfoldNear() {
  if (state.near?.length > 0) {
    state.nearUnfolded = !state.nearUnfolded;
    showNear();
  }
}

/** Does what a key does to the approved memory that is marked. */
function nearAction(key) {
  const marked = state.near?.[state.current];
  const action = marked?.actions.find((action) => action.key === key);
  if (action) {
    return choose(action.choice);
  }
  const refusal = marked?.refusal ? `${capitalised(marked.refusal)}.` : "No approved memory is shown.";
  return say(state.near === null ? "The approved memories are still looked for." : refusal);
}

async function write_() {
  const { summary, conflicts, written, batch, side_effects: effects } = await ask("write");
  state.summary = summary;
  state.closingSeen = false;
  const undo = written > 0 ? ` \`ack-memory undo ${batch}\` takes it back.` : "";
  const back = effects.map((line) => ` ${capitalised(line)}.`).join("");
  complain(conflicts ? `Not saved: ${conflicts}.` : "");
  const isEnd = state.screen === "plan" || summary.head.waiting === 0;
  if (isEnd && !conflicts && written > 0) {
    await openClosing();
  } else if (state.screen === "plan") {
    await openPlan();
  } else {
    const around = state.shown?.number ?? null;
    const first = await ask("queue", { view: state.view, around, count: 1 });
    await show(first.entries[0]?.number);
  }
  say(`Saved ${counted(written, "decision", "decisions")}.${back}${undo}`);
  return !conflicts;
}

async function finish(discard) {
  await ask("finish", { discard });
  state.over = true;
  state.summary.head.chosen = 0;
  sessionStorage.removeItem(TOKEN);
  const said = element("h2", { id: "title", tabindex: "-1" }, "Done. This page can be closed.");
  document.title = "Review: done";
  document.body.replaceChildren(element("main", { id: "closing" }, said));
  said.focus();
}

async function changeView(view) {
  if (view.queue !== undefined && view.queue !== state.view.queue) {
    deselect();
  }
  state.view = { ...state.view, ...view };
  const queue = await ask("queue", { view: state.view, count: WINDOW });
  const typing = document.activeElement;
  await show(queue.entries[0]?.number ?? null);
  typing?.focus();
  say(queue.complaint ?? (state.view.filter ? `${queue.total} fit.` : ""));
}

/** Does what a key does to the memory alone. */
function act(key) {
  const action = state.shown.actions.find((action) => action.key === key);
  return action ? choose(action.choice) : say("It is approved already.");
}

/** The other queue: what is unreviewed, or what is approved. */
function changeQueue() {
  const isApproved = state.screen === "cards" && state.view.queue === "approved";
  return closePlan("", isApproved ? "waiting" : "approved");
}

const ACTIONS = {
  a: () => act("a"),
  r: () => askReason(),
  p: () => act("p"),
  e: () => askEdit(),
  h: () => (state.shown.approved ? say("It is approved already.") : askDay()),
  m: () => nearAction("m"),
  d: () => nearAction("d"),
  "=": () => nearAction("="),
  ">": () => unfoldNear(),
  Enter: () => unfoldNear(),
  o: () => markNext(),
  s: () => move(1),
  j: () => move(1),
  k: () => move(-1),
  x: () => select(),
  X: () => selectAll(),
  g: () => keepOne(),
  n: () => unfold(),
  A: () => approveMany(),
  R: () => rejectMany(),
};
/** Those that need no memory. */
const ALWAYS = {
  z: () => takeBack(),
  c: () => (state.summary.head.chosen > 0 ? write_() : say("There is nothing to save.")),
  q: () => leave(),
  "?": () => showKeys(),
  l: () => changeQueue(),
  "/": () => by("filter").focus(),
  u: () => takeBack(),
};

/** Leaves the desk; before that, once, what was saved is shown. */
function leave() {
  const { progress, head } = state.summary;
  return progress.saved > 0 && head.chosen === 0 && !state.closingSeen ? openClosing() : askFinish();
}

/** One step back: from a selection, from what was typed to all, from the cards to the plan. */
function goBack() {
  if (state.screen === "closing") {
    return openPlan();
  }
  if (state.selected.size > 0) {
    return clearSelection();
  }
  const back = state.view.filter && !isHeap() ? clearFilter : openPlan;
  return state.screen === "plan" ? undefined : back();
}

const isHeap = () => state.view.filter.startsWith("heap:");

const screenKeys = () => ({ closing: CLOSING_KEYS, plan: PLAN_KEYS, cards: {} })[state.screen];

/** Empties the filter and its box together. The memory that is shown stays. */
function clearFilter() {
  clearTimeout(wait);
  by("filter").value = "";
  if (!state.shown) {
    return changeView({ filter: "" });
  }
  state.view.filter = "";
  return show(state.shown.number);
}

/** A key in a field: Enter goes on to what fits, Esc takes the filter away as well. */
function pressedInField(event) {
  if (event.key === "Enter" && event.target === by("filter")) {
    by("title")?.focus();
  } else if (event.key === "Escape") {
    by("title")?.focus();
    inTurn(() => (by("filter").value || state.view.filter ? clearFilter() : undefined));
  }
}

function pressed(event) {
  if (state.over || by("dialog").open) {
    return undefined;
  }
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    return showKeys();
  }
  if (event.target.closest("input, textarea")) {
    return pressedInField(event);
  }
  if (event.key === "Escape") {
    return inTurn(goBack);
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !state.singleKeys) {
    return undefined;
  }
  // Held down, a key must not decide about one memory after the other.
  const moves = ["j", "k"].includes(event.key);
  if (event.repeat && !moves) {
    return undefined;
  }
  const reason = state.reasons[Number(event.key) - 1];
  const onCard = reason ? () => choose({ do: "reject" }, { reason }) : ACTIONS[event.key];
  const act = screenKeys()[event.key] ?? ALWAYS[event.key] ?? onCard;
  if (!act || (event.key === "Enter" && event.target.closest("button, summary"))) {
    return undefined;
  }
  event.preventDefault();
  if (event.key === "/") {
    // At once: letters typed right after it belong into the box.
    return by("filter").focus();
  }
  // A key acts on the screen that stands there when its turn comes.
  return inTurn(() => {
    const now = screenKeys()[event.key] ?? ALWAYS[event.key];
    return now ? now() : state.screen === "cards" && state.shown ? onCard?.() : undefined;
  });
}
