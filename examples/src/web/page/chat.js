// The conversation: text, and a card for each call of a tool and each question.

import { ask, at, make } from "./dom.js";

/** Characters of growing output that are shown at each end. */
const OUTPUT_CHARS = 20_000;

/**
 * Shows the events of a session, and begins turns. `changed` is called when files may have
 * changed, and `replied` with each reply. The output of a call that runs is shown until its
 * reply is there, or stays if `keepsOutput`.
 */
export function startChat(base, events, { changed = () => {}, replied = () => {}, keepsOutput = false }) {
  const log = at("log");
  const text = at("text");
  /** The cards of calls without a reply, by the call's id. */
  const open = new Map();
  /** The paragraph that text is added to. */
  let paragraph = null;
  let turn = null;

  function add(element) {
    const following = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    log.append(element);
    if (following) log.scrollTop = log.scrollHeight;
    return element;
  }

  const draw = {
    user(event) {
      paragraph = null;
      add(make("div", { class: "user" }, event.text));
    },
    text(event) {
      paragraph ??= add(make("div", { class: "model" }));
      paragraph.append(event.text);
      log.scrollTop = log.scrollHeight;
    },
    call(event) {
      paragraph = null;
      const state = make("span", { class: "state" }, "…");
      const card = make("details", { class: "card", open: true },
        make("summary", {}, make("b", {}, event.name), subject(event.arguments), state),
        ...shown(event.name, event.arguments));
      open.set(event.id, { card, state });
      add(card);
    },
    output(event) {
      const call = open.get(event.id);
      if (!call) return;
      if (!call.output) {
        call.output = output();
        call.card.append(call.output.element);
      }
      call.output.add(event.text);
      log.scrollTop = log.scrollHeight;
    },
    reply(event) {
      replied(event);
      const { card, state, output } = open.get(event.id) ?? {};
      open.delete(event.id);
      if (!card) return;
      if (!keepsOutput) output?.element.remove();
      state.textContent = event.failed ? "failed" : "done";
      card.classList.add(event.failed ? "failed" : "done");
      // What the page draws has its numbers there.
      if (!event.drawn) card.append(make("pre", { class: "output" }, event.text));
      log.scrollTop = log.scrollHeight;
    },
    question(event) {
      paragraph = null;
      add(question(event));
      log.scrollTop = log.scrollHeight;
    },
    error(event) {
      paragraph = null;
      add(make("div", { class: "error", role: "alert" }, event.text));
    },
    busy() {
      add(make("div", { class: "error" }, "Another tab waits for an answer. Reload when it is there."));
    },
  };

  function question(event) {
    const answer = (body, said) => async () => {
      close(card, said);
      text.focus();
      try {
        await ask("POST", `${base}/answer`, { json: { number: event.number, ...body } });
      } catch (error) {
        draw.error({ text: error.message });
      }
    };
    const card = make("div", { class: "card question", role: "group", "aria-label": "Question" },
      make("p", {}, make("b", {}, "May I?"), " ", event.text),
      ...(event.effect ? [lines(event.effect)] : []),
      make("div", { class: "row" },
        make("button", { type: "button", class: "approve", click: answer({ approve: true }, "Approved.") }, "Approve"),
        make("button", { type: "button", class: "quiet", click: answer({ approve: true, remember: true }, "Approved, and the like of it.") }, "Approve always"),
        make("button", { type: "button", class: "quiet deny", click: answer({ approve: false }, "Denied.") }, "Deny")));
    return card;
  }

  function close(card, said) {
    card.classList.add("answered");
    card.querySelector(".row").replaceWith(make("p", { class: "answer" }, said));
  }

  async function say(said) {
    turn = new AbortController();
    at("send").disabled = true;
    at("stop").hidden = false;
    draw.user({ text: said });
    log.scrollTop = log.scrollHeight;
    try {
      const response = await ask("POST", `${base}/chat`, { json: { text: said }, signal: turn.signal });
      for await (const event of ndjson(response.body)) {
        draw[event.type]?.(event);
        if (event.type === "reply") changed();
      }
    } catch (error) {
      draw.error({ text: turn.signal.aborted ? "Stopped." : error.message });
    }
    for (const { state } of open.values()) state.textContent = "stopped";
    open.clear();
    for (const card of log.querySelectorAll(".question:not(.answered)")) close(card, "Not answered.");
    paragraph = null;
    turn = null;
    at("send").disabled = false;
    at("stop").hidden = true;
    changed();
  }

  at("say").addEventListener("submit", (event) => {
    event.preventDefault();
    const said = text.value.trim();
    if (turn || !said) return;
    text.value = "";
    say(said);
  });
  text.addEventListener("keydown", (event) => {
    // An input method uses Enter for itself.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    at("say").requestSubmit();
  });
  at("stop").addEventListener("click", () => turn?.abort());
  at("chat").addEventListener("keydown", (event) => {
    if (event.key === "Escape") turn?.abort();
  });

  for (const event of events) draw[event.type]?.(event);
  for (const { state } of open.values()) state.textContent = "";
  open.clear();
  paragraph = null;
  log.scrollTop = log.scrollHeight;
  text.focus();
}

/** Output that grows: its beginning and its end. */
function output() {
  const [head, tail] = [new Text(), new Text()];
  const gap = make("span", { class: "place" });
  const element = make("pre", { class: "output live", "aria-label": "Output so far" }, head, gap, tail);
  let left = 0;
  function add(text) {
    const room = OUTPUT_CHARS - head.length;
    head.appendData(text.slice(0, room));
    tail.appendData(text.slice(room));
    const over = tail.length - OUTPUT_CHARS;
    if (over > 0) {
      tail.deleteData(0, over);
      left += over;
      gap.textContent = `\n… ${left} characters are not shown here …\n`;
    }
    element.scrollTop = element.scrollHeight;
  }
  return { element, add };
}

/** Reads a stream of JSON lines. */
async function* ndjson(stream) {
  const decoder = new TextDecoder();
  let rest = "";
  for (const reader = stream.getReader(); ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const all = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = all.pop();
    for (const line of all) if (line) yield JSON.parse(line);
  }
}

/** What a call is about, for its headline. */
function subject(given) {
  const what = given.path ?? given.command ?? given.pattern ?? given.source ?? given.shell_id ?? given.question ?? given.title ?? "";
  return make("code", {}, String(what).split("\n")[0].slice(0, 200));
}

/** The body of a call's card: a diff for changes, the arguments for the rest. */
function shown(name, given) {
  if (name === "write_file") return [lines(marked("+", given.content))];
  if (name === "edit_file") {
    const edits = Array.isArray(given.edits) ? given.edits : [given];
    return edits.map((edit) => lines(marked("-", edit.old_string) + "\n" + marked("+", edit.new_string)));
  }
  if (name === "execute" || name === "run_in_background") {
    const command = String(given.command ?? "");
    return command.length > 50 || command.includes("\n") ? [lines(command)] : [];
  }
  const rest = Object.entries(given).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return rest.length > 1 ? [lines(rest.join("\n"))] : [];
}

function marked(sign, text) {
  return String(text ?? "").replace(/\n$/, "").split("\n").map((line) => sign + line).join("\n");
}

/** Lines of text, those of a diff in colour. */
function lines(text) {
  const kind = (line) => ({ "+": "added", "-": "removed", "@": "place" })[line[0]];
  return make("pre", { class: "lines" },
    ...text.split("\n").map((line) => make("span", { class: kind(line) }, `${line}\n`)));
}
