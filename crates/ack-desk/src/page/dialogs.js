// Questions that take more than a key: a reason, an edit, many at once, leaving.

let opener = null;

/** Opens the dialog with a name and what is in it. The first field or button has the focus. */
function open(name, ...content) {
  const dialog = by("dialog");
  opener = document.activeElement;
  dialog.replaceChildren(element("h2", { id: "dialog-name" }, name), ...content);
  if (!dialog.open) {
    dialog.showModal();
  }
  const first = dialog.querySelector("[autofocus], input, textarea, button");
  first?.focus({ preventScroll: true });
  dialog.scrollTop = 0;
}

function close() {
  by("dialog").close();
}

by("dialog").addEventListener("close", () => {
  // Focus goes back to where it was, or to the memory if that is not there any more.
  const back = opener?.isConnected && opener !== document.body ? opener : by("title");
  back?.focus();
});

const effects = (list) => listOf(list, { class: "effects" });
const cancel = () => button("Cancel", "Esc", close);

/** A field that Enter answers, if `act` does not use the key itself. */
function answerField(attributes, done, act = () => false) {
  const input = element("input", { autofocus: true, ...attributes });
  input.addEventListener("keydown", (event) => {
    if (act(event.key)) {
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      done(input.value);
    }
  });
  return input;
}

/** Why it is rejected: a digit, own words, or nothing. */
function askReason(numbers) {
  const about = numbers ?? [state.shown.number];
  const done = (reason) => {
    close();
    return inTurn(() => choose({ do: "reject" }, { numbers: about, reason }));
  };
  const attributes = { id: "reason", autocomplete: "off", maxlength: "500" };
  const input = answerField(attributes, done, (key) => {
    const common = input.value === "" ? state.reasons[Number(key) - 1] : undefined;
    return common && done(common);
  });
  const common = state.reasons.map((reason, position) =>
    button(reason, String(position + 1), () => done(reason)),
  );
  const reject = state.shown.actions.find((action) => action.key === "r");
  const back = numbers ? [] : (reject?.side_effects ?? []);
  open(
    about.length === 1 ? "Reject: why?" : `Reject ${about.length} memories: why?`,
    back.length > 0 ? effects(back) : "",
    element("label", { for: "reason" }, "A digit, your own words, or Enter without a reason"),
    input,
    buttons(...common),
    buttons(button("Reject", "Enter", () => done(input.value), { class: "main" }), cancel()),
  );
}

/** What is replaced by what, before it is done. */
function askReplace(marked, action) {
  const done = () => {
    close();
    return inTurn(() => choose(action.choice));
  };
  open(
    `${action.label}?`,
    effects(action.effects),
    comparison(marked),
    buttons(button(action.label, "Enter", done, { class: "main", autofocus: true }), cancel()),
  );
}

/** Until when it is snoozed. */
function askDay() {
  const number = state.shown.number;
  const done = (until) => {
    close();
    return inTurn(() => choose({ do: "put_off", until }, { numbers: [number] }));
  };
  const input = answerField({ id: "until", type: "date", min: dayIn(1), value: dayIn(7) }, done);
  const common = [
    ["tomorrow", 1],
    ["in a week", 7],
    ["in two weeks", 14],
    ["in a month", 30],
  ];
  open(
    "Snooze until when?",
    element("label", { for: "until" }, "It waits again from this day on"),
    input,
    buttons(...common.map(([name, count]) => button(name, null, () => done(dayIn(count))))),
    buttons(button("Snooze", "Enter", () => done(input.value), { class: "main" }), cancel()),
  );
}

const LISTS = new Set(["facts", "concepts", "files"]);
const FIELDS = [
  ["title", "Title"],
  ["subtitle", "Subtitle"],
  ["facts", "Facts, one a line"],
  ["narrative", "Narrative"],
  ["concepts", "Tags, one a line"],
  ["files", "Files, one a line"],
  ["type", "Type"],
  ["project", "Project"],
];

function askEdit() {
  const { card } = state.shown;
  const number = state.shown.number;
  const text = (field) => (LISTS.has(field) ? card[field].join("\n") : (card[field] ?? ""));
  const inputs = new Map();
  const parts = FIELDS.map(([field, label]) => {
    const long = LISTS.has(field) || field === "narrative";
    const input = element(long ? "textarea" : "input", { id: `edit-${field}`, autocomplete: "off" });
    input.value = text(field);
    inputs.set(field, input);
    return element("div", {}, element("label", { for: `edit-${field}` }, label), input);
  });
  const done = () => {
    const edit = {};
    for (const [field, input] of inputs) {
      const before = text(field);
      if (input.value !== before) {
        const lines = input.value.split("\n").map((line) => line.trim());
        edit[field] = LISTS.has(field) ? lines.filter(Boolean) : input.value;
      }
    }
    close();
    if (Object.keys(edit).length === 0) {
      say("Nothing was changed.");
      return;
    }
    inTurn(() => choose({ do: "edit", edit }, { numbers: [number] }));
  };
  const form = element("div", {}, ...parts);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      done();
    }
  });
  open(
    "Edit and approve",
    form,
    buttons(button("Approve as edited", "Ctrl+Enter", done, { class: "main" }), cancel()),
  );
}

/** Those that are selected, or else the memory and those that are much alike. */
function several() {
  if (state.selected.size > 0) {
    return [...state.selected];
  }
  const { number, group } = state.shown;
  return [number, ...group.map((entry) => entry.number)];
}

async function askMany(what) {
  const numbers = several();
  const choice = { do: what };
  const preview = await ask("preview", { numbers, choice });
  const done = () => {
    close();
    inTurn(() => choose(choice, { numbers }));
  };
  const reason = what === "reject" ? button("With a reason", null, () => askReason(numbers)) : null;
  open(
    `${preview.label}?`,
    effects(preview.effects),
    buttons(
      button(preview.label, "Enter", done, { class: "main", autofocus: true }),
      reason,
      cancel(),
    ),
  );
}

function askFinish() {
  const count = state.summary.head.chosen;
  if (count === 0) {
    inTurn(() => finish(false));
    return;
  }
  const act = (work) => () => {
    close();
    inTurn(work);
  };
  const save = act(async () => (await write_()) && finish(false));
  const discard = act(() => finish(true));
  open(
    `${counted(count, "decision", "decisions")}: save?`,
    buttons(
      button("Save and finish", "Enter", save, { class: "main", autofocus: true }),
      button("Finish without saving", null, discard),
      button("Go on", "Esc", close),
    ),
  );
}

function showKeys() {
  const reasons = state.reasons.map((reason, at) => [String(at + 1), `reject: ${reason}`]);
  const keys = KEYS.trimEnd().split("\n").map((line) => [line.slice(0, 10), line.slice(10)]);
  const lines = [...keys, ...reasons].map(([key, what]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("kbd", {}, key)),
      element("td", {}, what),
    ),
  );
  const single = element("input", { type: "checkbox", id: "single" });
  single.checked = state.singleKeys;
  single.addEventListener("change", () => {
    state.singleKeys = single.checked;
  });
  open(
    "Keys",
    element("table", {}, element("tbody", {}, ...lines)),
    element("label", {}, single, " Single keys act (switch off for dictation)"),
    buttons(button("Close", "Esc", close, { autofocus: true })),
  );
}
