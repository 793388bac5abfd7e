// The last screen: what agents know since this review, or since a part of it.

async function openClosing() {
  const found = await ask("closing");
  setScreen("closing");
  state.closingSeen = true;
  showHead();
  by("closing").replaceChildren(
    element("h2", { id: "closing-title", tabindex: "-1" }, "What your agents know since today"),
    element("p", { class: "lead" }, found.text),
    element("div", { class: "columns" }, closingKnowledge(found), closingTotals(found)),
  );
  by("closing-title").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  // It takes longer than a key may.
  ask("answered").then(showAnswered).catch(() => undefined);
}

function closingKnowledge({ projects }) {
  const rows = projects.map(({ project, count, lessons }) => {
    const name = element("p", { class: "of" }, element("strong", {}, project), ` +${count}`);
    return item(name, listOf(lessons));
  });
  return element(
    "section",
    { "aria-label": "What they learned" },
    element("div", { id: "answered", hidden: true }),
    rows.length > 0 ? element("ol", { class: "learned" }, ...rows) : "No memory was approved.",
  );
}

/** How many past prompts find an approved memory, now and before. */
function showAnswered(answered) {
  const place = by("answered");
  if (!answered || !place) {
    return;
  }
  const { prompts, before, after } = answered;
  const bars = [
    ["before", before ?? 0],
    ["after", Math.max(0, after - (before ?? 0))],
  ].map(([name, count]) => bar(name, count, prompts));
  const then = before === null ? "" : `; before this review: ${before}`;
  place.replaceChildren(
    element("h3", {}, `Your last ${counted(prompts, "prompt", "prompts")}, asked again`),
    element("p", {}, element("strong", {}, String(after)), ` find an approved memory${then}`),
    element("span", { class: "track", "aria-hidden": "true" }, ...bars),
  );
  place.hidden = false;
}

const COMMANDS = [
  ["Preview", "ack-memory context --preview"],
  ["Ask by hand", "ack-memory query"],
  ["Undo the last save", "ack-memory undo"],
];

function closingTotals({ saved, left, unchanged }) {
  const total = ({ done, count }) => item(element("strong", {}, String(count)), ` ${done}`);
  const next = COMMANDS.map(([what, command]) =>
    element("li", { class: "label" }, what, element("code", {}, command)),
  );
  return element(
    "section",
    { "aria-label": "Totals and what comes next" },
    element("h3", {}, "Today"),
    element("ul", { class: "totals" }, ...saved.map(total)),
    element("h3", {}, "Next"),
    element("ul", {}, ...next),
    small(unchanged),
    buttons(
      left > 0 ? button("Go on", "Enter", () => inTurn(openPlan), { class: "main" }) : null,
      button("Close", "q", askFinish, left > 0 ? {} : { class: "main" }),
      button("Browse approved", "l", () => inTurn(changeQueue)),
    ),
  );
}

/** Back to what is left. */
const CLOSING_KEYS = {
  Enter: () => openPlan(),
  k: () => openPlan(),
};
