// What is shown: the head, the queue, the card and what lies beside it.

// A list of more memories is folded.
const UNFOLDED_MEMBERS = 5;
const FLAGS = {
  secret: "looks like a password, a key or a token",
  addresses_agent: "addresses an agent",
  hidden: "a hidden character",
};
// Characters of what both memories say, on each side of a difference.
const AROUND = 60;

function showHead() {
  const { head } = state.summary;
  by("head").textContent = head.text;
  showProgress();
  const write = by("write");
  const saved = state.summary.progress.saved > 0 ? "✓ Saved" : "Nothing to save";
  write.replaceChildren(head.chosen === 0 ? saved : `Save ${head.chosen}`, element("kbd", { "aria-hidden": "true" }, "c"));
  write.disabled = head.chosen === 0;
  document.title = `(${head.waiting}) Review`;
}

/** How far the review is, and which part of the desk is shown. */
function showProgress() {
  const { progress, approved, head } = state.summary;
  by("progress").textContent = progress.text;
  const share = (count) => `${(100 * count) / Math.max(1, progress.total)}%`;
  by("bar-saved").style.width = share(progress.saved);
  by("bar-held").style.width = share(progress.decided - progress.saved);
  by("waiting-count").textContent = head.waiting;
  by("approved-count").textContent = approved || "";
  const isCard = !plan.isOpen && !closing.isOpen;
  for (const [tab, isShown] of [
    ["plan", plan.isOpen],
    ["waiting", isCard && state.view.queue === "waiting"],
    ["approved", isCard && state.view.queue === "approved"],
  ]) {
    by(`tab-${tab}`).ariaCurrent = isShown ? "page" : null;
  }
}

function showQueue() {
  const { total, from, entries } = state.queue;
  const shown = state.shown?.number;
  const filtered = state.view.filter ? " that fit" : "";
  const range = entries.length < total ? `${from + 1}–${from + entries.length} of ` : "";
  const selected = state.selected.size > 0 ? `, ${state.selected.size} selected` : "";
  by("place").textContent = `${range}${total}${filtered}${selected}`;
  const rows = entries.map((entry) => {
    const when = entry.decided ? [entry.decided] : [entry.type, days(entry.age_days)];
    const about = joined([entry.place, ...when]);
    const stale = entry.stale ? element("span", { class: "marked" }, ` · stale: ${entry.stale}`) : null;
    const mark = entry.flagged ? element("span", { class: "marked" }, " · flagged") : stale;
    return element(
      "li",
      {},
      element(
        "button",
        {
          type: "button",
          "aria-current": entry.number === shown ? "true" : null,
          "aria-pressed": state.selected.has(entry.number) ? "true" : null,
          onclick: () => inTurn(() => show(entry.number)),
        },
        element("span", { class: "title" }, entry.title),
        element("span", { class: "of" }, about, mark),
      ),
    );
  });
  const order = by("order");
  order.hidden = state.view.queue !== "approved";
  order.textContent = state.view.last_decided ? "last decided first" : "stale first";
  const list = by("queue");
  const held = list.contains(document.activeElement);
  list.replaceChildren(...rows);
  const place = entries.findIndex((entry) => entry.number === shown);
  const positionLine = document.getElementById("position");
  if (positionLine && place >= 0) {
    positionLine.textContent = `${from + place + 1} of ${total}`;
  }
  if (held) {
    list.querySelector("[aria-current]")?.focus();
  }
}

/** A text in one style, marked if it flags the memory. Never markup of the memory. */
function spanNode({ text, bold, emphasis, code, host, flag }) {
  const shown = host ? [text, element("span", { class: "host" }, ` (${host})`)] : [text];
  let node = shown;
  for (const [name, is] of [
    ["code", code],
    ["em", emphasis],
    ["strong", bold],
  ]) {
    node = is ? [element(name, {}, ...node)] : node;
  }
  return flag ? [element("mark", { title: FLAGS[flag] }, ...node)] : node;
}

const spanNodes = (spans) => spans.flatMap(spanNode);

const BLOCKS = {
  paragraph: ({ spans }) => element("p", {}, ...spanNodes(spans)),
  heading: ({ spans }) => element("p", { class: "heading" }, ...spanNodes(spans)),
  quote: ({ blocks }) => element("blockquote", {}, ...blockNodes(blocks)),
  list: ({ first, items }) =>
    element(
      first === undefined ? "ul" : "ol",
      { start: first },
      ...items.map((item) => element("li", {}, ...blockNodes(item))),
    ),
  code: ({ language, spans }) =>
    element(
      "pre",
      {},
      language ? element("span", { class: "language" }, language) : null,
      element("code", {}, ...spanNodes(spans)),
    ),
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
  const parts = [
    facts.length > 0 ? element("div", { class: "facts" }, ...blockNodes(facts)) : null,
    narrative.length > 0
      ? element("div", { class: "narrative", id: "narrative" }, ...blockNodes(narrative))
      : null,
  ];
  if (text.more_lines === 0) {
    return parts.filter(Boolean);
  }
  const label = state.whole ? "Show less" : counted(text.more_lines, "more line", "more lines");
  const box = { class: "text", tabindex: "0", role: "region", "aria-label": "The whole text" };
  return [
    element("div", state.whole ? box : { class: "text" }, ...parts),
    button(label, "n", () => inTurn(unfold), { "aria-expanded": String(Boolean(state.whole)) }),
  ];
}

/** How often the person's past prompts would have found it. */
function missedBy({ said, examples }) {
  const entries = examples.map(({ text, day }) => joined([`“${text}”`, day]));
  return element("div", { class: "missed-by" }, element("p", {}, said), listOf(entries));
}

function showCard() {
  const { card, text, position, total, chosen, flagged, missed } = state.shown;
  const place = position ? `${position} of ${total}` : "decided";
  const meta = [card.id, card.type, card.age_days === null ? null : `${days(card.age_days)} old`];
  const confidence = card.confidence === undefined ? "" : `${Math.round(card.confidence * 100)} %`;
  const parts = [
    element(
      "p",
      { class: "meta" },
      element("span", { id: "position" }, place),
      ...meta.filter(Boolean).map((part) => ` · ${part}`),
    ),
    element("h2", { id: "title", tabindex: "-1" }, ...spanNodes(text.title)),
  ];
  if (chosen) {
    parts.push(element("p", { class: "choice" }, `You ${chosen} it; not saved yet.`));
  }
  if (card.marks.length > 0) {
    const marks = listOf(card.marks, { class: flagged ? "marks flagged" : "marks" });
    if (flagged) {
      const meaning =
        "Never decided with a heap. Agents read it once you approve it, without hidden characters.";
      marks.append(element("li", { class: "meaning" }, meaning));
    }
    parts.push(marks);
  }
  if (text.subtitle.length > 0) {
    parts.push(element("p", { class: "subtitle" }, ...spanNodes(text.subtitle)));
  }
  parts.push(...textNodes());
  parts.push(
    rows([
      ["tags", card.concepts],
      ["files", card.files],
      ["project", card.project],
      ["scope", card.scope],
      ["session", card.session_title ? `${card.session_title} (${card.session})` : card.session],
      ["confidence", confidence],
      ["served", card.served],
    ]),
  );
  parts.push(missed ? missedBy(missed) : "", element("dl", { id: "evidence", hidden: true }));
  by("card").replaceChildren(...parts);
  showEvidence();
  showGroup();
}

/** Others that wait and are alike. */
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
      button("Approve all", "A", () => inTurn(() => askMany("approve"))),
      button("Reject all", "R", () => inTurn(() => askMany("reject"))),
    ),
    element("details", {}, element("summary", {}, "the others"), listOf(links)),
  );
}

/** What the working tree says. */
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
    return element(name, {}, element("span", { class: "unseen" }, said), text);
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

const relation = ({ relation: kind, label }) =>
  element("span", { class: `relation ${kind}` }, label);

/** A part of the card that is folded in a narrow window. */
function fold(id, name, about, ...content) {
  const isWide = matchMedia("(min-width: 50rem)").matches;
  by(id).replaceChildren(
    element(
      "details",
      { open: isWide, class: "fold" },
      element("summary", {}, element("h2", { id: `${id}-name` }, name), about),
      ...content,
    ),
  );
}

function nearEntry(near, position) {
  const isMarked = position === state.current;
  const age = near.age_days === null ? null : `${days(near.age_days)} old`;
  const about = joined([near.held ? "approved, not saved yet" : null, near.id, age]);
  const actions = near.actions.map((action) =>
    button(action.label, action.key, () => inTurn(() => nearAction(action.key)), {
      title: action.effects.join("\n"),
    }),
  );
  const mark = button("Mark", position === nextNear() ? "o" : null, () =>
    inTurn(() => markNext(position)),
  );
  const details = element(
    "details",
    { open: isMarked && state.nearUnfolded },
    element(
      "summary",
      {},
      element("span", { class: "title" }, near.title),
      element("span", { class: "small" }, relation(near), ` ${about}`),
    ),
    comparison(near),
  );
  return element(
    "li",
    { class: "near", "aria-current": isMarked ? "true" : null },
    details,
    near.conflict ? contradiction(near.conflict) : null,
    buttons(...(isMarked ? actions : [mark])),
  );
}

function showNear() {
  const { near } = state;
  const name = "Nearest approved";
  if (near === null) {
    fold("near", name, null, element("p", { class: "small" }, "…"));
  } else if (near.length === 0) {
    fold("near", name, null, element("p", { class: "small" }, "Nothing like it is approved."));
  } else {
    const about = element("span", { class: "small" }, relation(near[0]), ` ${near.length}`);
    fold("near", name, about, element("ol", {}, ...near.map(nearEntry)));
  }
}

const CHANGES = { enters: "+", leaves: "−", replaced: "−" };

/** What the next session of its project starts with, without and with the memory. */
function showNext() {
  const { next, isWithout } = state;
  by("next").hidden = next === null;
  if (next === null) {
    return;
  }
  const name = "What changes for agents";
  if (next === undefined) {
    fold("next", name, null, element("p", { class: "small" }, "…"));
    return;
  }
  const count = (...kinds) => next.lines.filter(({ change }) => kinds.includes(change)).length;
  const [entering, leaving] = [count("enters"), count("leaves", "replaced")];
  const about = entering > 0 ? `+${entering}${leaving > 0 ? ` −${leaving}` : ""}` : "nothing";
  const lines = next.lines.filter(({ change }) => !isWithout || change !== "enters");
  const shown = lines.map(({ title, change }) => {
    const sign = isWithout ? undefined : CHANGES[change];
    const unseen = { enters: "comes in: ", leaves: "leaves: ", replaced: "is replaced: " }[change];
    const said = sign ? element("span", { class: "unseen" }, unseen) : null;
    return element(
      "li",
      { class: sign ? change : null },
      element("span", { class: "sign", "aria-hidden": "true" }, sign ?? ""),
      element("span", {}, said, title),
    );
  });
  const view = (label, without) =>
    button(label, null, () => inTurn(() => showWithout(without)), {
      "aria-pressed": String(isWithout === without),
    });
  fold(
    "next",
    name,
    element("span", { class: "small" }, about),
    element(
      "div",
      { class: "views" },
      element("span", { class: "small" }, `Next session in ${next.project}`),
      view("without", true),
      view("with", false),
    ),
    element("ol", {}, ...shown),
    element("p", { class: "small" }, next.says),
  );
}

function showWithout(isWithout) {
  state.isWithout = isWithout;
  showNext();
}

const change = (number, title) =>
  button("Change", null, () => inTurn(() => show(number)), {
    class: "plain",
    "aria-label": `Change: ${title}`,
  });

/** The memories of one decision about several. */
function members(made) {
  const more = made.count - made.members.length;
  const list = element(
    "ul",
    { class: "members" },
    ...made.members.map(({ number, title }) =>
      element("li", {}, element("span", {}, title), change(number, title)),
    ),
    more > 0 ? element("li", {}, `and ${more} more`) : null,
  );
  const open = made.count <= UNFOLDED_MEMBERS;
  return element("details", { open }, element("summary", {}, "one by one"), list);
}

function showRecent() {
  const { recent } = state.summary;
  const entries = recent.map((made) => {
    const why = made.reason ? ` (${made.reason})` : "";
    return element(
      "li",
      {},
      element("p", {}, element("strong", {}, made.done), `${why}: ${made.about}`),
      made.count > 1 ? members(made) : null,
      buttons(
        made.count === 1 ? change(made.members[0].number, made.about) : null,
        button("Take back", null, () => inTurn(() => takeBack(made.key)), {
          class: "plain",
          "aria-label": `Take back: ${made.about}`,
        }),
      ),
    );
  });
  by("recent").replaceChildren(
    element("h2", { id: "recent-name" }, "Last decisions"),
    entries.length > 0
      ? element("ol", {}, ...entries)
      : element("p", { class: "small" }, "None yet. They are saved when you say so."),
  );
}

function showActions() {
  const { actions, card, approved, flagged } = state.shown;
  const why = card.warnings.includes("addresses_agent") ? "8" : "7";
  const offered = ["addresses_agent", "secret"].some((flag) => card.warnings.includes(flag))
    ? state.reasons[Number(why) - 1]
    : null;
  const find = (key) => actions.find((action) => action.key === key);
  const approve = find("a");
  const promote = find("p");
  const act = (action, attributes) =>
    button(
      action.label,
      action.key,
      () => inTurn(() => (action.key === "r" ? askReason() : choose(action.choice))),
      { title: action.effects.join("\n"), ...attributes },
    );
  const { count: many } = state.selection;
  by("actions").replaceChildren(
    ...[
      act(approve, { class: flagged ? "good" : "main" }),
      act(find("r"), { class: "bad" }),
      offered ? button(`Reject: ${offered}`, why, () => inTurn(() => reject(offered))) : null,
      button("Edit and approve", "e", () => inTurn(askEdit)),
      promote ? act(promote, {}) : null,
      approved ? null : button("Snooze", "h", () => inTurn(askDay)),
      button("Skip", "s", () => inTurn(() => move(1))),
      button("Undo", "u", () => inTurn(() => takeBack())),
      button(state.selected.has(state.shown.number) ? "Unselect" : "Select", "x", () =>
        inTurn(select),
      ),
      ...(many > 0
        ? [
            button(`Approve ${many} selected`, "A", () => inTurn(() => askMany("approve"))),
            button(`Reject ${many} selected`, "R", () => inTurn(() => askMany("reject"))),
          ]
        : []),
    ].filter(Boolean),
  );
}

/** Nothing waits, or nothing fits the filter. */
function showEnd() {
  state.shown = null;
  state.near = [];
  const { head } = state.summary;
  const left = {
    waiting:
      state.view.filter && head.waiting > 0
        ? "Nothing that waits fits the filter."
        : "Nothing waits any more.",
    approved: state.summary.searching
      ? "Reading what is approved …"
      : state.view.filter
        ? "No matches."
        : "Nothing more is approved.",
  }[state.view.queue];
  const save = () => button(`Save ${head.chosen}`, "c", () => inTurn(write_), { class: "main" });
  const write = head.chosen > 0 ? save() : "";
  by("card").replaceChildren(element("h2", { id: "title", tabindex: "-1" }, left), write);
  by("group").hidden = true;
  state.next = null;
  showNext();
  showNear();
  by("actions").replaceChildren(button("Undo", "u", () => inTurn(() => takeBack())));
}
