// The beginning, and what happens by itself.

const ALIVE = 20000;
// While something is still looked for.
const SOON = 500;
const PAUSE = 200;

/** Uses the word of the address, if there is one, and takes it out of the address bar. */
async function enter() {
  const word = location.hash.slice(1);
  if (!/^[0-9a-f]{64}$/.test(word)) {
    return;
  }
  history.replaceState(null, "", "/");
  const { session } = await ask("enter", { word });
  sessionStorage.setItem(TOKEN, session);
}

async function begin() {
  await enter();
  const summary = await ask("summary");
  state.reasons = summary.reasons;
  state.view.queue = summary.queue;
  state.summary = summary;
  const queue = await ask("queue", { view: state.view, count: WINDOW });
  state.queue = queue;
  const isFew = summary.head.waiting < MIN_PLANNED || summary.queue === "approved";
  await (isFew || summary.begins_with_cards ? show(queue.entries[0]?.number ?? null) : openPlan());
  if (summary.notice) {
    say(summary.notice);
  }
  setInterval(alive, ALIVE);
  setTimeout(watch, SOON);
}

/** Sees what is found in the background, until all of it is. */
async function watch() {
  if ((await alive()).searching) {
    setTimeout(watch, SOON);
  }
}

/** Tells the server that the page is open, and sees what another page did. */
async function alive() {
  if (state.over) {
    return {};
  }
  const found = await ask("alive").catch(() => ({}));
  if (found.revision !== undefined && found.revision !== state.summary.revision) {
    await inTurn(renew);
  }
  return found;
}

/** Shows what changed elsewhere. Where the person is stays. */
async function renew() {
  state.summary = await ask("summary");
  showHead();
  if (state.screen === "closing") {
    return undefined;
  }
  if (state.screen === "plan") {
    await loadPlan();
    return showPlan();
  }
  if (!state.shown) {
    return changeView({});
  }
  state.shown = await card(state.shown.number);
  const isRead = document.activeElement === by("title");
  showCard();
  showActions();
  if (isRead) {
    by("title").focus({ preventScroll: true });
  }
  return refresh();
}

document.addEventListener("keydown", pressed);
window.addEventListener("focus", () => state.summary && alive());
window.addEventListener("beforeunload", (event) => {
  if (!state.over && state.summary?.head.chosen > 0) {
    event.preventDefault();
  }
});
by("write").addEventListener("click", () => inTurn(write_));
by("finish").addEventListener("click", askFinish);
by("help").addEventListener("click", showKeys);
for (const undo of ["undo", "undo-last"]) {
  by(undo).addEventListener("click", () => inTurn(() => takeBack()));
}
by("more").addEventListener("click", ({ target }) => {
  target.ariaExpanded = String(document.body.toggleAttribute("data-more"));
});
by("tab-plan").addEventListener("click", () => inTurn(() => openPlan()));
by("tab-waiting").addEventListener("click", () => inTurn(() => closePlan()));
by("tab-approved").addEventListener("click", () => inTurn(() => closePlan("", "approved")));
by("order").addEventListener("click", () =>
  inTurn(() => changeView({ last_decided: !state.view.last_decided })),
);
let wait = 0;
by("filter").addEventListener("input", () => {
  clearTimeout(wait);
  wait = setTimeout(() => {
    const queue = state.screen === "cards" ? state.view.queue : "waiting";
    inTurn(() => closePlan(by("filter").value, queue));
  }, PAUSE);
});

inTurn(() => begin().catch((error) => complain(error.message)));
