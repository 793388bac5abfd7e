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

const effects = (list) =>
  element("ul", { class: "effects" }, ...list.map((effect) => element("li", {}, effect)));

/** Why it is rejected: a digit, own words, or nothing. */
function askReason(numbers) {
  const about = numbers ?? [state.shown.number];
  const done = (reason) => {
    close();
    return inTurn(() => choose({ do: "reject" }, { numbers: about, reason }));
  };
  const input = element("input", {
    id: "reason",
    autocomplete: "off",
    autofocus: true,
    maxlength: "500",
  });
  input.addEventListener("keydown", (event) => {
    const common = input.value === "" ? state.reasons[Number(event.key) - 1] : undefined;
    if (event.key === "Enter") {
      event.preventDefault();
      done(input.value);
    } else if (common) {
      event.preventDefault();
      done(common);
    }
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
    element("div", { class: "buttons" }, ...common),
    element(
      "div",
      { class: "buttons" },
      button("Reject", "Enter", () => done(input.value), { class: "main" }),
      button("Cancel", "Esc", close),
    ),
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
    marked.diff ? difference(marked.diff) : element("p", { class: "diff", tabindex: "0" }, marked.text),
    element(
      "div",
      { class: "buttons" },
      button(action.label, "Enter", done, { class: "main", autofocus: true }),
      button("Cancel", "Esc", close),
    ),
  );
}

/** Until when it is snoozed. */
function askDay() {
  const number = state.shown.number;
  const day = (count) => new Date(Date.now() + count * 86_400_000).toISOString().slice(0, 10);
  const done = (until) => {
    close();
    return inTurn(() => choose({ do: "put_off", until }, { numbers: [number] }));
  };
  const input = element("input", {
    id: "until",
    type: "date",
    min: day(1),
    value: day(7),
    autofocus: true,
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      done(input.value);
    }
  });
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
    element(
      "div",
      { class: "buttons" },
      ...common.map(([name, count]) => button(name, null, () => done(day(count)))),
    ),
    element(
      "div",
      { class: "buttons" },
      button("Snooze", "Enter", () => done(input.value), { class: "main" }),
      button("Cancel", "Esc", close),
    ),
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
    const input = element(long ? "textarea" : "input", {
      id: `edit-${field}`,
      autocomplete: "off",
    });
    input.value = text(field);
    inputs.set(field, input);
    return element("div", {}, element("label", { for: `edit-${field}` }, label), input);
  });
  const done = () => {
    const edit = {};
    for (const [field, input] of inputs) {
      const before = text(field);
      if (input.value !== before) {
        const lines = input.value
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean);
        edit[field] = LISTS.has(field) ? lines : input.value;
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
    element(
      "div",
      { class: "buttons" },
      button("Approve as edited", "Ctrl+Enter", done, { class: "main" }),
      button("Cancel", "Esc", close),
    ),
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
    element(
      "div",
      { class: "buttons" },
      button(preview.label, "Enter", done, { class: "main", autofocus: true }),
      reason,
      button("Cancel", "Esc", close),
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
  open(
    `${counted(count, "decision", "decisions")}: save?`,
    element(
      "div",
      { class: "buttons" },
      button(
        "Save and finish",
        "Enter",
        act(async () => {
          if (await write_()) {
            await finish(false);
          }
        }),
        { class: "main", autofocus: true },
      ),
      button(
        "Finish without saving",
        null,
        act(() => finish(true)),
      ),
      button("Go on", "Esc", close),
    ),
  );
}

const KEYS = [
  ["a", "approve"],
  ["r", "reject, with a reason if you like"],
  ["1 … 9", "reject for a common reason"],
  ["e", "edit and approve"],
  ["p", "promote: approve what matters beyond its project"],
  ["m", "merge into the approved memory that is marked"],
  ["d", "duplicate of the approved memory that is marked"],
  ["=", "replace the approved memory that is marked, after a preview"],
  ["o", "mark the next approved memory"],
  [">, Enter", "show the marked one, or fold it"],
  ["h", "snooze until a day"],
  ["l", "approved memories (a keeps one), or back to what waits"],
  ["s", "skip"],
  ["j, k", "the next one, the one before"],
  ["x, X", "select; select all that the filter shows, less the flagged"],
  ["A, R", "approve or reject all that are selected, or else all that are much alike; on the plan, the heap"],
  ["g", "approve this one; those that are much alike are its duplicates"],
  ["n", "show all of the text, or less"],
  [">, →", "on the plan, split the heap by type, or join its parts"],
  ["/", "filter; Enter goes on to what fits, Esc takes the filter away"],
  ["u, z", "undo the last decision"],
  ["Esc", "one step back: from a filter to all, from the cards to the plan"],
  ["c", "save the decisions"],
  ["q", "finish"],
  ["?, Ctrl+K", "these keys"],
];

function showKeys() {
  const lines = KEYS.map(([key, what]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("kbd", {}, key)),
      element("td", {}, what),
    ),
  );
  const reasons = state.reasons.map((reason, position) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("kbd", {}, String(position + 1))),
      element("td", {}, `reject: ${reason}`),
    ),
  );
  const single = element("input", { type: "checkbox", id: "single" });
  single.checked = state.singleKeys;
  single.addEventListener("change", () => {
    state.singleKeys = single.checked;
  });
  open(
    "Keys",
    element("table", {}, element("tbody", {}, ...lines, ...reasons)),
    element("label", {}, single, " Single keys act (switch off for dictation)"),
    element("div", { class: "buttons" }, button("Close", "Esc", close, { autofocus: true })),
  );
}
