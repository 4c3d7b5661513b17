// All models: what each learnt from, promises, and turned out to do.

import { link, make } from "./elements.js";
import { ask } from "./server.js";
import { megabytes, texts } from "./studio_texts.js";

const words = texts.models;

export async function modelsView(about) {
  const { models } = await (await ask("v1/studio/models")).json();
  const heading = make("div.row", {}, make("h2", {}, words.title), models.length > 1 ? link(words.compare, "#/compare", "a.button") : null);
  const empty = make("section.panel", {}, make("p", {}, words.none), about.role === "train" ? link(words.first, "#/train", "a.button.main") : null);
  return { title: words.title, content: [heading, models.length ? make("div.models", {}, models.map(card)) : empty] };
}

function card(model) {
  const address = `#/models/${encodeURIComponent(model.name)}`;
  const known = model.rate !== undefined;
  return make(
    "article.panel.model",
    {},
    make("h3", {}, link(model.name, address)),
    known ? make("p", {}, words.learnt(model)) : null,
    known ? make("p", {}, words.promise(model)) : null,
    known && model.realised.false_alarms ? make("p.soft", {}, `${texts.realised.falseAlarms}: ${texts.realised.rate(model.realised.false_alarms)}`) : null,
    model.fault ? make("p.fault", {}, known ? words.replaced(model.fault) : words.unreadable(model.fault)) : null,
    model.drift ? make("p.caution", {}, model.drift) : known && model.realised.inspected ? make("p.soft", {}, words.noDrift(model.realised.inspected)) : null,
    make("p.soft", {}, megabytes(model.bytes)),
    make("div.row.start", {}, known ? link(words.inspect, `#/inspect/${encodeURIComponent(model.name)}`, "a.button.main") : null, link(texts.details, address, "a.button")),
  );
}
