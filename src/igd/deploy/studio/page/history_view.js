// The history: verdicts by model, date and words, each with its picture and map.

import { button, field, fill, link, make } from "./elements.js";
import { saving } from "./job_view.js";
import { realised } from "./model_view.js";
import { mapped, picture } from "./pictures.js";
import { ask } from "./server.js";
import { dated, texts } from "./studio_texts.js";
import { kindOf, truthButtons, verdictLine } from "./verdict_view.js";

const words = texts.history;
const NAMES = ["model", "alarms", "since", "until", "text"];

export async function historyView(about) {
  const { models } = await (await ask("v1/studio/models")).json();
  const list = make("div.history");
  const total = make("p", { role: "status" });
  const more = button(texts.more, () => load(list.lastElementChild?.dataset.id));
  const chosen = models.find((model) => model.name === about.query.get("model"));
  const asked = askedOf(about.query);
  const turnedOut = make("div");
  const showRealised = (model) => model?.realised && fill(turnedOut, realised(model, about.role === "train"));
  showRealised(chosen);
  // What a person says of an image counts at once.
  const onSaved = async () => chosen && showRealised(await (await ask(`v1/studio/models/${encodeURIComponent(chosen.name)}`)).json());

  const load = async (before) => {
    const query = new URLSearchParams(asked);
    if (before) query.set("before", before);
    const found = await (await ask(`v1/verdicts?${query}`)).json();
    total.textContent = found.total ? words.total(found.total) : words.none;
    list.append(...found.verdicts.map((verdict) => row(about, verdict, onSaved)));
    more.hidden = list.children.length >= found.total;
  };
  await load();
  return {
    title: words.title,
    content: [
      make("h2", {}, words.title),
      filters(about.query, models, asked),
      turnedOut,
      total,
      list,
      more,
    ].filter(Boolean),
  };
}

// What the server is asked, from what the address says: days are the reader's own.
function askedOf(query) {
  const asked = new URLSearchParams();
  for (const name of ["model", "text"]) if (query.get(name)) asked.set(name, query.get(name));
  if (query.get("alarms")) asked.set("alarms", "true");
  const day = (name, later) => {
    const time = new Date(`${query.get(name)}T00:00`);
    if (Number.isNaN(time.getTime())) return;
    time.setDate(time.getDate() + later);
    asked.set(name, time.toISOString().replace("Z", "+00:00"));
  };
  day("since", 0);
  day("until", 1);
  return asked;
}

function filters(query, models, asked) {
  const controls = {
    model: make("select", { id: "filter-model" }, make("option", { value: "" }, words.all), models.map(({ name }) => make("option", { value: name }, name))),
    alarms: make("input", { type: "checkbox", id: "filter-alarms" }),
    since: make("input", { type: "date", id: "filter-since" }),
    until: make("input", { type: "date", id: "filter-until" }),
    text: make("input", { type: "search", id: "filter-text", maxlength: 200 }),
  };
  for (const name of NAMES) {
    if (name === "alarms") controls.alarms.checked = Boolean(query.get("alarms"));
    else controls[name].value = query.get(name) ?? "";
  }
  const submit = (event) => {
    event.preventDefault();
    const wanted = new URLSearchParams();
    for (const name of NAMES) {
      const value = name === "alarms" ? (controls.alarms.checked ? "1" : "") : controls[name].value;
      if (value) wanted.set(name, value);
    }
    location.hash = `#/history?${wanted}`;
  };
  for (const name of ["model", "alarms", "since", "until"]) controls[name].addEventListener("change", submit);
  return make(
    "form.filters.panel",
    { onsubmit: submit, role: "search" },
    make("div.fields", {}, field(words.model, controls.model), field(words.since, controls.since), field(words.until, controls.until), field(words.text, controls.text)),
    make(
      "div.row",
      {},
      make("label.check", {}, controls.alarms, words.alarms),
      make("div.row", {}, make("button", { type: "submit" }, words.search), saving(words.csv, `v1/verdicts.csv?${asked}`, "verdicts.csv")),
    ),
  );
}

function row(about, verdict, onSaved) {
  const path = `v1/verdicts/${verdict.id}`;
  return make(
    `article.entry.${kindOf(verdict.outcome)}`,
    { "data-id": verdict.id },
    make("a.thumb", { href: `#/${path.slice(3)}`, "aria-label": verdict.name }, mapped({ photo: picture(`${path}/thumbnail`, ""), layer: picture(`${path}/layer`, ""), alt: "" })),
    make(
      "div.entry-words",
      {},
      verdictLine(verdict.outcome),
      make("p.name", {}, link(verdict.name, `#/${path.slice(3)}`)),
      make("p.soft", {}, `${dated(verdict.time)}, ${verdict.model}, ${texts.pValue} ${verdict.p_value.toFixed(3)}`),
      verdict.note ? make("p.note-text", {}, verdict.note) : null,
    ),
    truthButtons(about, verdict, onSaved),
  );
}
