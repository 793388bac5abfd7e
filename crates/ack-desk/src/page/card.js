// What is shown: the head, the rail, the card and what lies beside it.

const MARKS = { rejected: "✕", snoozed: "z", merged: "=", replaced: "=", "marked as a duplicate": "=" };
// How far below its upper end the rail shows the memory that the card is about.
const RAIL_PAST = 128;
const FLAGS = {
  secret: "looks like a password, a key or a token",
  addresses_agent: "addresses an agent",
  hidden: "a hidden character",
};
// Characters of what both memories say, on each side of a difference.
const AROUND = 60;

/** How far the review is, and which part of the desk is shown. */
function showHead() {
  const { progress, approved, head } = state.summary;
  const write = by("write");
  const saved = progress.saved > 0 ? "✓ Saved" : "Nothing to save";
  write.replaceChildren(head.chosen === 0 ? saved : `Save ${head.chosen}`, keyHint("c"));
  write.disabled = head.chosen === 0;
  document.title = `(${head.waiting}) Review`;
  by("progress").textContent = progress.text;
  const share = (count) => `${(100 * count) / Math.max(1, progress.total)}%`;
  by("bar-saved").style.width = share(progress.saved);
  by("bar-held").style.width = share(progress.decided - progress.saved);
  by("waiting-count").textContent = head.waiting;
  by("approved-count").textContent = approved || "";
  const shown = state.screen === "cards" ? state.view.queue : state.screen;
  for (const tab of ["plan", "waiting", "approved"]) {
    by(`tab-${tab}`).ariaCurrent = tab === shown ? "page" : null;
  }
}

/** The undo list, where one is, and what comes. */
function showRail() {
  const { total, position, entries } = state.queue;
  const { filter, queue, last_decided: isLast } = state.view;
  const heap = plan.heaps.find(({ name }) => filter === `heap:${name}`);
  by("rail-name").textContent = heap?.title ?? (filter || "All");
  const place = position ? `${position} of ${total}` : String(total);
  by("place").textContent = place;
  if (by("position") && position) {
    by("position").textContent = place;
  }
  const order = by("order");
  order.hidden = queue !== "approved";
  order.textContent = isLast ? "last decided first" : "stale first";
  const decided = state.summary.recent.toReversed().map(decidedEntry);
  by("decided-label").hidden = decided.length === 0;
  const current = fillList("rail", () => {
    by("decided").replaceChildren(...decided);
    by("queue").replaceChildren(...entries.map(railEntry));
  });
  by("rail").scrollTop = (current?.offsetTop ?? 0) - RAIL_PAST;
}

/** Fills a list, whose current entry gets the focus if one had it. Returns the current entry. */
function fillList(id, fill) {
  const held = by(id).contains(document.activeElement);
  fill();
  const current = by(id).querySelector("[aria-current]");
  if (held) {
    current?.focus();
  }
  return current;
}

function railButton(number, parts, attributes) {
  const current = number === state.shown?.number ? "true" : null;
  const onclick = () => inTurn(() => show(number));
  return element("button", { type: "button", "aria-current": current, onclick, ...attributes }, ...parts);
}

const sign = (text, name = "") =>
  element("span", { class: `sign ${name}`, "aria-hidden": "true" }, text);

/** What was decided, with a click to change it. Several decided together are folded. */
function decidedEntry({ done, reason, about, count, members }) {
  const mark = MARKS[done] ?? "✓";
  const parts = (title) => [
    sign(mark, mark === "✕" ? "bad" : "good"),
    span("title", title),
    element("span", { class: "of", title: reason ? `${done}: ${reason}` : done }, done),
  ];
  const entry = ({ number, title }) => item(railButton(number, parts(title)));
  if (count === 1) {
    return entry({ ...members[0], title: about });
  }
  const rest = count - members.length;
  const more = rest > 0 ? element("li", { class: "small" }, `and ${rest} more`) : null;
  const all = element("ol", {}, ...members.map(entry), more);
  return item(element("details", {}, element("summary", {}, ...parts(about)), all));
}

/** One that is undecided, or approved. */
function railEntry(entry) {
  const { number, title, alike, missed, flagged, decided, stale } = entry;
  const isSelected = state.selected.has(number);
  const plain = sign(decided ? "" : missed ? `${missed}×` : "·");
  const mark = isSelected ? sign("*", "chosen") : flagged ? sign("⚑", "warn") : plain;
  const about = decided ? joined([entry.place, decided]) : alike ? `${alike} alike` : null;
  const why = stale ? span("warn", ` · stale: ${stale}`) : null;
  const parts = [
    mark,
    span("title", flagged ? unseen("flagged: ") : null, title),
    about ? span("of", about, why) : null,
  ];
  const isCurrent = number === state.shown?.number;
  const next = missed === null ? ["Next"] : ["Next", "missed"].map((text) => element("span", {}, text));
  const label = isCurrent && !decided ? element("p", { class: "label" }, ...next) : null;
  const open = railButton(number, parts, { "aria-pressed": isSelected ? "true" : null });
  return element("li", { class: decided ? "approved" : null }, open, label);
}

/** A text in one style, marked if it flags the memory. Never markup of the memory. */
function spanNode({ text, bold, emphasis, code, host, flag }) {
  const shown = host ? [text, span("host", ` (${host})`)] : [text];
  const names = [code ? "code" : null, emphasis ? "em" : null, bold ? "strong" : null];
  const within = (node, name) => (name ? [element(name, {}, ...node)] : node);
  const node = names.reduce(within, shown);
  return flag ? [element("mark", { title: FLAGS[flag] }, ...node)] : node;
}

const spanNodes = (spans) => spans.flatMap(spanNode);

const BLOCKS = {
  paragraph: ({ spans }) => element("p", {}, ...spanNodes(spans)),
  heading: ({ spans }) => element("p", { class: "heading" }, ...spanNodes(spans)),
  quote: ({ blocks }) => element("blockquote", {}, ...blockNodes(blocks)),
  list: ({ first, items }) => {
    const entries = items.map((blocks) => item(...blockNodes(blocks)));
    return element(first === undefined ? "ul" : "ol", { start: first }, ...entries);
  },
  code: ({ language, spans }) => {
    const name = language ? span("language", language) : null;
    return element("pre", {}, name, element("code", {}, ...spanNodes(spans)));
  },
};

const blockNodes = (blocks) => blocks.map((block) => BLOCKS[block.block](block));

/** Names with their values, without those that have none. */
function rows(pairs, attributes) {
  const known = pairs.filter(([, value]) => value?.length > 0);
  const shown = known.flatMap(([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, Array.isArray(value) ? listOf(value) : value),
  ]);
  return element("dl", attributes, ...shown);
}

/** Facts and narrative: the first lines, or all of them in a box that scrolls. */
function textNodes() {
  const { text } = state.shown;
  const { facts, narrative } = state.whole ?? text;
  const part = (attributes, blocks) =>
    blocks.length > 0 ? [element("div", attributes, ...blockNodes(blocks))] : [];
  const parts = [
    ...part({ class: "facts" }, facts),
    ...part({ class: "narrative", id: "narrative" }, narrative),
  ];
  if (text.more_lines === 0) {
    return parts;
  }
  const label = state.whole ? "Show less" : counted(text.more_lines, "more line", "more lines");
  const box = { class: "text", tabindex: "0", role: "region", "aria-label": "The whole text" };
  return [
    element("div", state.whole ? box : { class: "text" }, ...parts),
    button(label, "n", () => inTurn(unfold), { "aria-expanded": String(Boolean(state.whole)) }),
  ];
}

function showMissed() {
  const missed = state.shown?.missed;
  by("missed").hidden = !missed;
  if (missed) {
    const entries = missed.examples.map(({ text, day }) => joined([`“${text}”`, day]));
    const examples = listOf(entries, { class: "small" });
    fold("missed", "Missed by your agents", null, element("p", {}, missed.said), examples);
  }
}

/** What it is: its type, project, age and confidence, and its id. */
function metaLine({ card, position, total }) {
  const age = card.age_days === null ? null : `${days(card.age_days)} old`;
  const confidence = card.confidence === undefined ? null : `confidence ${card.confidence.toFixed(2)}`;
  return element(
    "p",
    { class: "meta" },
    element("span", { id: "position" }, position ? `${position} of ${total}` : "decided"),
    card.type ? span("chip", card.type) : null,
    element("span", {}, joined([card.project, age, confidence])),
    element("code", {}, card.id),
  );
}

/** What was chosen for it, with a way to undo that alone. */
function choiceLine({ number, chosen }) {
  const made = state.summary.recent.find(({ members }) => members.some((one) => one.number === number));
  const label = made?.count > 1 ? `Undo all ${made.count}` : "Undo";
  const undo = made ? button(label, null, () => inTurn(() => takeBack(made.key)), { class: "plain" }) : "";
  return element("p", { class: "choice" }, `You ${chosen} it; not saved yet. `, undo);
}

function showCard() {
  const { card, text, chosen, flagged } = state.shown;
  const marks = listOf(card.marks, { class: flagged ? "marks flagged" : "marks" });
  if (flagged) {
    const meaning =
      "Never decided with a heap. Agents read it once you approve it, without hidden characters.";
    marks.append(element("li", { class: "meaning" }, meaning));
  }
  const subtitle = element("p", { class: "subtitle" }, ...spanNodes(text.subtitle));
  const session = card.session_title ? `${card.session_title} (${card.session})` : card.session;
  const parts = [
    card.marks.length > 0 ? marks : null,
    metaLine(state.shown),
    element("h2", { id: "title", tabindex: "-1" }, ...spanNodes(text.title)),
    chosen ? choiceLine(state.shown) : null,
    text.subtitle.length > 0 ? subtitle : null,
    ...textNodes(),
    rows([
      ["files", card.files],
      ["session", session],
      ["tags", card.concepts],
      ["scope", card.scope],
      ["served", card.served],
    ]),
    element("dl", { id: "evidence", hidden: true }),
  ];
  by("card").replaceChildren(...parts.filter(Boolean));
  showEvidence();
  showGroup();
  showMissed();
}

function showGroup() {
  const { group } = state.shown;
  const alike = by("group");
  alike.hidden = group.length === 0;
  const others = group.length === 1 ? "the other is its duplicate" : "the others are its duplicates";
  const links = group.map(({ number, title }) =>
    button(title, null, () => inTurn(() => show(number)), { class: "plain" }),
  );
  alike.replaceChildren(
    element("h2", { id: "group-name" }, `${group.length + 1} alike`),
    buttons(
      button(`Keep this one, ${others}`, "g", () => inTurn(keepOne)),
      button("Approve all", "A", () => inTurn(approveMany)),
      button("Reject all", "R", () => inTurn(rejectMany)),
    ),
    element("details", {}, element("summary", {}, "the others"), listOf(links)),
  );
}

function showEvidence() {
  const { evidence: lines } = state;
  const place = by("evidence");
  if (place && lines) {
    const said = listOf(lines, { class: "lines" });
    place.replaceChildren(element("dt", {}, "in the project"), element("dd", {}, said));
    place.hidden = false;
  }
}

/** What only one of two memories says, with a few words around it. */
function difference(parts) {
  const marked = parts.map(({ side, text }, position) => {
    if (side === "both") {
      return shortened(text, position > 0, position < parts.length - 1);
    }
    const [name, said] = side === "newer" ? ["ins", "only here: "] : ["del", "only there: "];
    return element(name, {}, unseen(said), text);
  });
  return element("p", { class: "diff", tabindex: "0" }, ...marked);
}

/** What is different about an approved memory, or all of it. */
const comparison = ({ diff, text }) =>
  diff ? difference(diff) : element("p", { class: "diff", tabindex: "0" }, text);

/** The ends of what both say that touch a difference. */
function shortened(text, before, after) {
  if (text.length <= 2 * AROUND) {
    return text;
  }
  const start = before ? text.slice(0, AROUND) : "";
  const end = after ? text.slice(-AROUND) : "";
  return `${start} … ${end}`;
}

const contradiction = ({ newer, older }) =>
  rows([["here", newer], ["there", older]], { class: "conflict" });

const relation = ({ relation: kind, label }) => span(`relation ${kind}`, label);

/** A part of the card that is folded in a narrow window. */
function fold(id, name, about, ...content) {
  const open = matchMedia("(min-width: 50rem)").matches;
  const summary = element("summary", {}, element("h2", { id: `${id}-name` }, name), about);
  by(id).replaceChildren(element("details", { open, class: "fold" }, summary, ...content));
}

function nearEntry(near, position) {
  const isMarked = position === state.current;
  const age = near.age_days === null ? null : `${days(near.age_days)} old`;
  const about = joined([near.held ? "approved, not saved yet" : null, near.id, age]);
  const actions = near.actions.map(({ label, key, effects }) =>
    button(label, key, () => inTurn(() => nearAction(key)), { title: effects.join("\n") }),
  );
  const key = position === nextNear() ? "o" : null;
  const mark = button("Mark", key, () => inTurn(() => markNext(position)));
  const title = [span("title", near.title), span("small", relation(near), ` ${about}`)];
  const summary = element("summary", {}, ...title);
  const isOpen = isMarked && state.nearUnfolded;
  return element(
    "li",
    { class: "near", "aria-current": isMarked ? "true" : null },
    element("details", { open: isOpen }, summary, comparison(near)),
    near.conflict ? contradiction(near.conflict) : null,
    buttons(...(isMarked ? actions : [mark])),
  );
}

function showNear() {
  const { near } = state;
  const name = "Nearest approved";
  if (near?.length > 0) {
    const about = span("small", relation(near[0]), ` ${near.length}`);
    fold("near", name, about, element("ol", {}, ...near.map(nearEntry)));
  } else {
    fold("near", name, null, small(near === null ? "…" : "Nothing like it is approved."));
  }
}

// The sign of a change, and what it says to those who hear.
const CHANGES = {
  enters: ["+", "comes in: "],
  leaves: ["−", "leaves: "],
  replaced: ["−", "is replaced: "],
};

/** What the next session of its project starts with, without and with the memory. */
function showNext() {
  const { next, isWithout } = state;
  by("next").hidden = next === null;
  if (next === null) {
    return;
  }
  const name = "What changes for agents";
  if (next === undefined) {
    fold("next", name, null, small("…"));
    return;
  }
  const count = (...kinds) => next.lines.filter(({ change }) => kinds.includes(change)).length;
  const [entering, leaving] = [count("enters"), count("leaves", "replaced")];
  const about = entering > 0 ? `+${entering}${leaving > 0 ? ` −${leaving}` : ""}` : "nothing";
  const lines = next.lines.filter(({ change }) => !isWithout || change !== "enters");
  const shown = lines.map(({ title, change }) => {
    const [mark, said] = (isWithout ? null : CHANGES[change]) ?? ["", ""];
    const before = element("span", { class: "sign", "aria-hidden": "true" }, mark);
    const what = element("span", {}, said ? unseen(said) : null, title);
    return element("li", { class: mark ? change : null }, before, what);
  });
  const view = (label, without) => {
    const look = () => {
      state.isWithout = without;
      showNext();
    };
    const pressed = String(isWithout === without);
    return button(label, null, () => inTurn(look), { "aria-pressed": pressed });
  };
  const session = span("small", `Next session in ${next.project}`);
  fold(
    "next",
    name,
    span("small", about),
    element("div", { class: "views" }, session, view("without", true), view("with", false)),
    element("ol", {}, ...shown),
    small(next.says),
  );
}

/** What A and R would decide about: how many, why some are held back, and five of them. */
function showSelected() {
  const { said, sample, sampled } = state.selection;
  by("selected").hidden = state.selected.size === 0;
  by("selected").replaceChildren(
    element("h2", { id: "selected-name" }, said),
    small(sampled),
    element("ol", { class: "sample" }, ...sample.map(sampleEntry)),
  );
}

/** The reason that a flagged memory is most likely rejected for. */
function offeredReason({ warnings }) {
  const at = warnings.includes("addresses_agent") ? 7 : warnings.includes("secret") ? 6 : null;
  return state.reasons[at];
}

function showActions() {
  showSelected();
  const { actions, approved, flagged } = state.shown;
  const { count, said } = state.selection;
  if (state.selected.size > 0) {
    const many = [
      button(`Approve ${count}`, "A", () => inTurn(approveMany), { class: "main" }),
      button(`Reject ${count}`, "R", () => inTurn(rejectMany), { class: "bad" }),
    ];
    by("actions").replaceChildren(
      element("p", {}, said),
      ...(count > 0 ? many : []),
      button("Clear", "Esc", () => inTurn(clearSelection)),
    );
    return;
  }
  const act = (key, look) => {
    const { label, effects, choice } = actions.find((action) => action.key === key);
    const does = () => (key === "r" ? askReason() : choose(choice));
    const attributes = { title: effects.join("\n"), class: look };
    return button(label, key, () => inTurn(does), attributes);
  };
  by("actions").replaceChildren(
    act("a", flagged ? "good" : "main"),
    act("r", "bad"),
    button("Edit", "e", () => inTurn(askEdit)),
    ...(approved ? [] : [act("p"), button("Snooze", "h", () => inTurn(askDay))]),
    button("Skip", "s", () => inTurn(() => move(1))),
    button("Select", "x", () => inTurn(select)),
  );
}

/** Nothing is unreviewed, or nothing fits the filter. */
function showEnd() {
  state.shown = null;
  state.near = [];
  const { head, searching } = state.summary;
  const { filter, queue } = state.view;
  const waiting = filter && head.waiting > 0 ? "No matches." : "Nothing unreviewed.";
  const approved = filter ? "No matches." : "Nothing more is approved.";
  const known = searching ? "Reading what is approved …" : approved;
  const left = queue === "waiting" ? waiting : known;
  const save = () => button(`Save ${head.chosen}`, "c", () => inTurn(write_), { class: "main" });
  const write = head.chosen > 0 ? save() : "";
  by("card").replaceChildren(element("h2", { id: "title", tabindex: "-1" }, left), write);
  by("group").hidden = true;
  state.next = null;
  showNext();
  showNear();
  showMissed();
  showSelected();
  by("actions").replaceChildren(button("Undo", "u", () => inTurn(() => takeBack())));
}
