// The studio: which view is shown, by the address behind '#', so that every link survives a reload.

import { compareView } from "./compare_view.js";
import { words as cameraWords } from "./camera.js";
import { announce, fault, fill, link, make } from "./elements.js";
import { historyView } from "./history_view.js";
import { inspectView } from "./inspect_view.js";
import { jobView, jobsView } from "./job_view.js";
import { modelView } from "./model_view.js";
import { modelsView } from "./models_view.js";
import { ask, onTokenNeeded, words as serverWords } from "./server.js";
import { texts } from "./studio_texts.js";
import { askForToken } from "./token_dialog.js";
import { trainView } from "./train_view.js";
import { verdictView } from "./verdict_view.js";

const NAV = [
  ["inspect", texts.nav.inspect],
  ["history", texts.nav.history],
  ["models", texts.nav.models],
  ["train", texts.nav.train],
  ["jobs", texts.nav.jobs],
];
const VIEWS = {
  models: (about, name) => (name ? modelView(about, name) : modelsView(about)),
  train: trainView,
  jobs: (about, number) => (number ? jobView(about, number) : jobsView(about)),
  inspect: inspectView,
  history: historyView,
  verdicts: verdictView,
  compare: compareView,
};
const main = document.getElementById("main");
let about = null;
let leave = () => {};
let place = null; // the view that is shown, without what it was asked
let shown = 0; // counts views, so that one that comes late does not take another's place

Object.assign(serverWords, texts.server);
Object.assign(cameraWords, texts.camera);
document.documentElement.lang = texts.language;
const textOf = (key) => key.split(".").reduce((part, name) => part[name], texts);
for (const node of document.querySelectorAll("[data-text]")) node.textContent = textOf(node.dataset.text);
for (const node of document.querySelectorAll("[data-label]")) node.ariaLabel = textOf(node.dataset.label);
onTokenNeeded(askForToken);
window.addEventListener("hashchange", show);
show();

async function show() {
  const turn = ++shown;
  leave();
  leave = () => {};
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  const held = document.activeElement?.id; // a filter that was changed keeps the keyboard
  main.classList.add("loading");
  try {
    about ??= await (await ask("v1/studio")).json();
    document.getElementById("who").textContent = texts.role[about.role];
    const view = VIEWS[name] ?? VIEWS[await firstView()];
    const { title, content, close } = await view({ ...about, query: new URLSearchParams(query) }, ...rest);
    if (turn !== shown) return close?.();
    leave = close ?? leave;
    document.title = `${title} – igd studio`;
    fill(main, ...content);
    announce(title);
    if (place !== null && document.activeElement === document.body) (document.getElementById(held) ?? main).focus({ preventScroll: true });
    if (place !== path) window.scrollTo(0, 0);
    place = path;
    document.getElementById(new URLSearchParams(query).get("to"))?.scrollIntoView();
  } catch (error) {
    if (turn === shown) fill(main, make("section.panel", {}, make("h2", {}, texts.failed), fault(error.message), link(texts.nav.models, "#/models")));
  }
  main.classList.remove("loading");
  mark(name);
}

// Who has no model yet begins with training.
async function firstView() {
  const { models } = await (await ask("v1/studio/models")).json();
  return models.length ? "inspect" : "models";
}

function mark(name) {
  const current = name === "verdicts" ? "history" : name === "compare" ? "models" : name;
  document.getElementById("nav").replaceChildren(
    ...NAV.map(([view, text]) => make("a", { href: `#/${view}`, "aria-current": view === current ? "page" : null }, text)),
  );
}
