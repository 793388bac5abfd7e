// Questions that take more than a key: a reason, an edit, many at once, leaving.

let opener = null;

/** Opens the dialog with a name and what is in it. The first field or button has the focus. */
function open(name, ...content) {
  const dialog = by("dialog");
  dialog.oncancel = null;
  dialog.className = "";
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
const mayClose = () => by("dialog").dispatchEvent(new Event("cancel", { cancelable: true }));
const cancel = () => button("Cancel", "Esc", () => mayClose() && close());

// A key presses the button that shows it, unless it belongs to a text.
by("dialog").addEventListener("keydown", (event) => {
  const { target, key } = event;
  const isText = target.matches("input, textarea") && target.type !== "date" && target.value !== "";
  const all = [...by("dialog").querySelectorAll("button")];
  const wanted = all.find((one) => one.getAttribute("aria-keyshortcuts") === key);
  if (wanted && key.length === 1 && !isText && !event.repeat) {
    event.preventDefault();
    event.stopPropagation();
    wanted.click();
  }
});

/** A field that Enter answers. */
function answerField(attributes, done) {
  const input = element("input", { autofocus: true, ...attributes });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      done(input.value);
    }
  });
  return input;
}

/** Why one or several are rejected: a digit, own words, or nothing. */
function askReason(numbers = [state.shown.number], name = "Reject because…", about = null) {
  const done = (reason) => {
    close();
    return inTurn(() => choose({ do: "reject" }, { numbers, reason }));
  };
  const attributes = { id: "reason", autocomplete: "off", maxlength: "500" };
  const input = answerField(attributes, done);
  const offered = about === null ? offeredReason(state.shown.card) : null;
  const common = state.reasons.map((reason, position) => {
    const look = { class: reason === offered ? "offered" : null };
    return button(reason, String(position + 1), () => done(reason), look);
  });
  const reject = state.shown.actions.find((action) => action.key === "r");
  const changes = about ?? reject?.side_effects ?? [];
  open(
    name,
    changes.length > 0 ? effects(changes) : "",
    element("label", { for: "reason" }, "A digit, your own words, or Enter without a reason"),
    input,
    element("div", { class: "reasons" }, ...common),
    buttons(button("Reject", "Enter", () => done(input.value), { class: "main" }), cancel()),
  );
  by("dialog").className = "sheet";
}

function askDay() {
  const number = state.shown.number;
  const done = (until) => {
    close();
    return inTurn(() => choose({ do: "put_off", until }, { numbers: [number] }));
  };
  const input = answerField({ id: "until", type: "date", min: dayIn(1), value: dayIn(7) }, done);
  const common = [
    ["tomorrow", "d", 1],
    ["in a week", "w", 7],
    ["in a month", "m", 30],
  ];
  open(
    "Snooze until when?",
    element("label", { for: "until" }, "It is unreviewed again from this day on"),
    input,
    buttons(...common.map(([name, key, count]) => button(name, key, () => done(dayIn(count))))),
    buttons(button("Snooze", "Enter", () => done(input.value), { class: "main" }), cancel()),
  );
}

const DISCARDS = "Esc again discards what you typed.";
const LISTS = new Set(["facts", "concepts", "files"]);
const FIELDS = [
  ["title", "Title"],
  ["subtitle", "Subtitle"],
  ["facts", "Facts, one per line"],
  ["narrative", "Narrative"],
  ["concepts", "Tags, one per line"],
  ["files", "Files, one per line"],
  ["type", "Type"],
  ["project", "Project"],
];

function askEdit() {
  const { card, number } = state.shown;
  const text = (field) => (LISTS.has(field) ? card[field].join("\n") : (card[field] ?? ""));
  const inputs = new Map();
  const parts = FIELDS.map(([field, label]) => {
    const long = LISTS.has(field) || field === "narrative";
    const input = element(long ? "textarea" : "input", { id: `edit-${field}`, autocomplete: "off" });
    input.value = text(field);
    inputs.set(field, input);
    return element("div", {}, element("label", { for: `edit-${field}` }, label), input);
  });
  const changes = () => {
    const edit = {};
    for (const [field, input] of inputs) {
      const before = text(field);
      if (input.value !== before) {
        const lines = input.value.split("\n").map((line) => line.trim());
        edit[field] = LISTS.has(field) ? lines.filter(Boolean) : input.value;
      }
    }
    return Object.keys(edit).length > 0 ? edit : null;
  };
  const flaw = element("p", { class: "flaw", role: "alert" });
  const tell = (text) => {
    flaw.textContent = text;
    flaw.scrollIntoView({ block: "nearest" });
  };
  const done = () => {
    const edit = changes();
    if (!edit) {
      close();
      say("Nothing was changed.");
      return;
    }
    const refused = () => tell(by("alarm").textContent);
    inTurn(() => choose({ do: "edit", edit }, { numbers: [number] }).then(close, refused));
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
    flaw,
    buttons(button("Approve as edited", "Ctrl+Enter", done, { class: "main" }), cancel()),
  );
  by("dialog").oncancel = (event) => {
    if (changes() && flaw.textContent !== DISCARDS) {
      event.preventDefault();
      tell(DISCARDS);
    }
  };
}

/** Those that are selected, or else the memory and those that are much alike. */
function several() {
  const alike = state.shown?.group.length > 0 ? [state.shown, ...state.shown.group] : [];
  return state.selected.size > 0 ? [...state.selected] : alike.map(({ number }) => number);
}

function approveMany() {
  const numbers = several();
  return numbers.length > 0 ? choose({ do: "approve" }, { numbers, together: true }) : say(NO_SIMILAR);
}

async function rejectMany() {
  const numbers = several();
  if (numbers.length === 0) {
    return say(NO_SIMILAR);
  }
  const { label, effects } = await ask("preview", { numbers, choice: { do: "reject" }, together: true });
  return askReason(numbers, `${label} because…`, effects);
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
    `Save ${counted(count, "decision", "decisions")}?`,
    buttons(
      button("Save", "y", save, { class: "main", autofocus: true }),
      button("Discard", "n", discard),
      button("Stay", "Esc", close),
    ),
  );
}

function showKeys() {
  const reasons = state.reasons.map((reason, at) => [String(at + 1), `reject: ${reason}`]);
  const rows = KEYS.trimEnd().replace(/\n {10}/g, " ").split("\n");
  const keys = rows.map((line) => [line.slice(0, 10), line.slice(10)]);
  const lines = [...keys, ...reasons].map(([key, what]) => {
    const head = element("th", { scope: "row" }, element("kbd", {}, key));
    return element("tr", {}, head, element("td", {}, what));
  });
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
