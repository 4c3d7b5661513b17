// The page: images in, cards and history out, one rate for all verdicts.

import { openCamera } from "./camera.js";
import { Card } from "./cards.js";
import { models, onTokenNeeded, score } from "./server.js";
import { askForToken } from "./token_dialog.js";
import { isAnomalous, percent, ratesOf, sharePhrase, toCsv, wordOf } from "./verdicts.js";

const MOST_CARDS = 24; // with pictures; the history goes on without them
const AT_ONCE = 4; // requests; images that arrive together are scored together

const element = (id) => document.getElementById(id);
const state = { models: [], model: null, limits: {}, rates: [], rate: 0, cards: [], history: [], waiting: [], asking: 0 };

onTokenNeeded(askForToken);
element("files").addEventListener("change", (event) => {
  add(event.target.files);
  event.target.value = "";
});
document.addEventListener("paste", (event) => add(event.clipboardData?.files ?? []));
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.toggle("dragging", kind === "dragover");
    if (kind === "drop") add(event.dataTransfer.files);
  });
}
element("model").addEventListener("change", (event) => choose(event.target.value));
element("rate").addEventListener("input", (event) => accept(state.rates[event.target.value]));
element("export").addEventListener("click", save);
element("camera").hidden = !navigator.mediaDevices?.getUserMedia;
element("camera").addEventListener("click", () => openCamera((file) => add([file])));
connect();

async function connect() {
  try {
    const answer = await models();
    state.models = answer.models;
    state.limits = answer;
    element("model").replaceChildren(...answer.models.map((model) => new Option(model.name, model.name)));
    element("model-choice").hidden = answer.models.length < 2;
    choose(answer.models[0].name);
    next();
  } catch (error) {
    element("about").textContent = `${error.message} Reload the page to try again.`;
  }
}

function choose(name) {
  const model = state.models.find((each) => each.name === name);
  state.model = model;
  document.title = `${model.name} – igd`;
  const calibrated = `calibrated on ${model.calibration_images} normal images`;
  element("about").textContent = state.models.length > 1 ? calibrated : `${model.name}, ${calibrated}`;
  state.rates = ratesOf(model);
  const slider = element("rate");
  slider.max = state.rates.length - 1;
  slider.value = state.rates.indexOf(model.max_false_alarms);
  slider.disabled = false;
  element("rate-lowest").textContent = `${percent(state.rates[0])}, the lowest it can promise`;
  element("rate-highest").textContent = percent(state.rates.at(-1));
  accept(model.max_false_alarms);
}

function accept(rate) {
  state.rate = rate;
  element("rate-value").textContent = percent(rate);
  element("rate").setAttribute("aria-valuetext", percent(rate));
  element("rate-meaning").textContent = `At most ${sharePhrase(rate, "raise")} an alarm. Fewer false alarms, more defects missed.`;
  for (const card of state.cards) card.decide(rate);
  summarise();
}

function add(files) {
  if (files.length) element("guide").open = false;
  for (const file of files) {
    const card = new Card(file, () => {
      card.wait();
      state.waiting.push({ file, card });
      next();
    });
    state.cards.unshift(card);
    element("cards").prepend(card.element);
    state.waiting.push({ file, card });
  }
  while (state.cards.length > MOST_CARDS) state.cards.pop().remove();
  next();
}

async function next() {
  if (!state.model || state.asking >= AT_ONCE || !state.waiting.length) return;
  const { file, card } = state.waiting.shift();
  const model = state.model;
  state.asking += 1;
  next();
  try {
    if (file.size > state.limits.max_bytes) throw new Error(tooLarge(file));
    const result = await score(model.name, file, (await card.displayable) ? "layer" : "overlay");
    await card.show(result, model);
    card.decide(state.rate);
    state.history.unshift({ time: new Date(), model, result });
    element("history").hidden = false;
    summarise(`${result.name}: ${wordOf(isAnomalous(result.p_value, state.rate, model)).toLowerCase()}. `);
  } catch (error) {
    card.fail(readable(error.message, file.name));
    element("summary").textContent = `${file.name}: no verdict.`;
  } finally {
    state.asking -= 1;
    next();
  }
}

function readable(message, name) {
  const plain = message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message;
  return `${plain[0].toUpperCase()}${plain.slice(1)}${/[.?!]$/.test(plain) ? "" : "."}`;
}

function tooLarge(file) {
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  return `It has ${megabytes(file.size)}, and this server takes ${megabytes(state.limits.max_bytes)}; make it smaller.`;
}

function verdictOf(entry) {
  return isAnomalous(entry.result.p_value, state.rate, entry.model);
}

function summarise(news = "") {
  const count = state.history.filter(verdictOf).length;
  const total = state.history.length;
  const images = total === 1 ? "1 image" : `${total} images`;
  element("summary").textContent = total ? `${news}${count} of ${images} anomalous at ${percent(state.rate)}.` : "";
  element("rows").replaceChildren(...state.history.map(rowOf));
}

function rowOf(entry) {
  const anomalous = verdictOf(entry);
  const cells = [
    [entry.time.toLocaleTimeString(), ""],
    [entry.result.name, "image"],
    [entry.model.name, ""],
    [entry.result.score.toFixed(3), "number"],
    [entry.result.p_value.toFixed(3), "number"],
    [wordOf(anomalous), anomalous ? "anomalous" : "normal"],
  ];
  const row = document.createElement("tr");
  for (const [text, kind] of cells) {
    const cell = row.insertCell();
    cell.textContent = text;
    cell.className = kind;
  }
  return row;
}

function save() {
  const rows = state.history.map((entry) => ({
    time: entry.time.toISOString(),
    image: entry.result.name,
    model: entry.model.name,
    score: entry.result.score,
    p_value: entry.result.p_value,
    max_false_alarms: Math.max(state.rate, entry.model.lowest_rate),
    is_anomalous: verdictOf(entry),
    areas: entry.result.regions.length,
  }));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([toCsv(rows)], { type: "text/csv" }));
  link.download = "igd-history.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}
