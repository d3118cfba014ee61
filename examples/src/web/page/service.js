// The session of this browser, and the views.

import { ask, at } from "./dom.js";

const wide = matchMedia("(min-width: 700px)");
const tabs = [...document.querySelectorAll("[role=tab]")];

// On a wide screen the first view, the chat, is always there, beside one of the others.
function show(view, focus = false) {
  if (wide.matches && view === tabs[0].dataset.view) view = tabs[1].dataset.view;
  for (const tab of tabs) {
    const selected = tab.dataset.view === view;
    tab.setAttribute("aria-selected", selected);
    tab.tabIndex = selected ? 0 : -1;
    at(tab.dataset.view).classList.toggle("shown", selected);
    if (selected && focus) tab.focus();
  }
  document.body.dataset.view = view;
  document.dispatchEvent(new CustomEvent("view", { detail: view }));
}

for (const tab of tabs) {
  tab.addEventListener("click", () => show(tab.dataset.view));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = tabs.filter((each) => each.offsetParent !== null);
    show(shown.at((shown.indexOf(tab) + step) % shown.length).dataset.view, true);
  });
}
wide.addEventListener("change", () => show(document.body.dataset.view));

/** Begins the session, or finds it again, and calls `start` with its path and its description. */
export async function begin(start) {
  try {
    const session = await (await ask("POST", "/sessions")).json();
    const model = session.scripted ? "A script answers, not a model" : `The model is ${session.model}`;
    at("about").textContent = `${model}. Your sandbox is ${session.sandbox}.`;
    const base = `/sessions/${session.id}`;
    at("new").addEventListener("click", async () => {
      if (!confirm("Begin a new session? This one is deleted, with its files.")) return;
      try {
        await ask("DELETE", base);
        location.reload();
      } catch (error) {
        at("about").textContent = error.message;
      }
    });
    start(base, session);
    show(tabs[0].dataset.view);
    document.body.dataset.ready = "";
  } catch (error) {
    at("about").textContent = `The session did not begin: ${error.message}`;
  }
}
