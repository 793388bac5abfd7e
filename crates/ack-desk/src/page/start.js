// The beginning, and what happens by itself.

const ALIVE = 20000;
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

async function start() {
  try {
    await begin();
  } catch (error) {
    complain(error.message);
  }
}

async function begin() {
  await enter();
  const summary = await ask("summary");
  state.reasons = summary.reasons;
  state.view.queue = summary.queue;
  by("which-queue").value = summary.queue;
  setSummary(summary);
  const queue = await ask("queue", { view: state.view, count: WINDOW });
  state.queue = queue;
  const isFew = summary.head.waiting < MIN_PLANNED || summary.queue === "stale";
  await (isFew ? show(queue.entries[0]?.number ?? null) : openPlan());
  if (summary.notice) {
    say(summary.notice);
  }
  setInterval(alive, ALIVE);
}

/** Tells the server that the page is open, and sees what another page did. */
async function alive() {
  if (state.over) {
    return;
  }
  const { revision } = await ask("alive").catch(() => ({}));
  if (revision !== undefined && revision !== state.summary.revision) {
    await inTurn(async () => {
      setSummary(await ask("summary"));
      if (plan.isOpen) {
        await openPlan({ keepMessage: true });
        return;
      }
      const number = state.shown?.number;
      await (number === undefined ? changeView({}) : show(number));
    });
  }
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
by("open-plan").addEventListener("click", () => inTurn(openPlan));
by("which-queue").addEventListener("change", () =>
  inTurn(() => changeView({ queue: by("which-queue").value })),
);
let wait = 0;
by("filter").addEventListener("input", () => {
  clearTimeout(wait);
  wait = setTimeout(() => inTurn(() => closePlan(by("filter").value)), PAUSE);
});

inTurn(start);
