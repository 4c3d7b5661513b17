// A verdict: its words, what a person says of it, and the page of one.

import { acting, announce, button, facts, fault, field, fill, link, make } from "./elements.js";
import { saving } from "./job_view.js";
import { mapped, opacityControl, picture } from "./pictures.js";
import { ask, send } from "./server.js";
import { dated, percent, texts } from "./studio_texts.js";

const words = texts.verdict;

export function verdictLine(outcome) {
  const told = texts.outcome[outcome];
  return make("p.verdict", {}, make("span.sign", { "aria-hidden": "true" }, told.sign), make("span.word", {}, told.word));
}

export const kindOf = (outcome) => ({ normal: "normal", spot: "doubtful", unlike: "doubtful" })[outcome] ?? "anomalous";

// Buttons for what an image really is; pressed again, one takes it back.
export function truthButtons(about, verdict, onSaved = () => {}) {
  const said = make("div");
  const names = texts.truthOf(verdict.is_anomalous);
  const group = make("div.truth", { role: "group", "aria-label": texts.truthGroup(verdict.name) });
  if (about.role === "view") return verdict.truth ? make("p.soft", {}, names[verdict.truth]) : group;
  const draw = () =>
    fill(group, 
      ...["good", "defect"].map((truth) =>
        make("button", { type: "button", "data-truth": truth, "aria-pressed": String(verdict.truth === truth), onclick: acting(() => say(truth), said) }, names[truth]),
      ),
      said,
    );
  const say = async (truth) => {
    const told = await send("PATCH", `v1/verdicts/${verdict.id}`, { truth: verdict.truth === truth ? null : truth, note: verdict.note ?? "" });
    Object.assign(verdict, told);
    draw();
    group.querySelector(`[data-truth="${truth}"]`)?.focus();
    onSaved(verdict);
  };
  draw();
  return group;
}

export async function verdictView(about, number) {
  const path = `v1/verdicts/${Number(number)}`;
  const verdict = await (await ask(path)).json();
  const [older, newer] = await Promise.all([neighbour(verdict, -1), neighbour(verdict, 1)]);
  const layer = picture(`${path}/layer`, "");
  const told = texts.outcome[verdict.outcome];
  const onkeydown = (event) => {
    if (event.target.matches("input, textarea, select") || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowLeft: newer, ArrowRight: older }[event.key];
    if (to) location.hash = `#/verdicts/${to}`;
  };
  document.addEventListener("keydown", onkeydown);
  const content = make(
    `article.card.single.${kindOf(verdict.outcome)}`,
    {},
    mapped({ photo: picture(`${path}/thumbnail`, ""), layer, alt: texts.mapOf(verdict.name), ...verdict }),
    make(
      "div.words",
      {},
      make("h2.name", {}, verdict.name),
      verdictLine(verdict.outcome),
      told.meaning ? make("p.meaning", {}, told.meaning) : null,
      verdict.remarks.map((remark) => make("p.caution", {}, texts.remark(remark))),
      facts([
        [texts.score, verdict.score.toFixed(3)],
        [texts.pValue, verdict.p_value.toFixed(3)],
        [words.areas, verdict.regions.length || words.none],
        [words.rate, percent(verdict.rate)],
        [words.model, link(verdict.model, `#/models/${encodeURIComponent(verdict.model)}`)],
        [words.time, dated(verdict.time)],
        [words.size, `${verdict.width}×${verdict.height}`],
      ]),
      opacityControl(texts.map, layer),
      make("h3", {}, words.person),
      truthButtons(about, verdict),
      about.role === "view" ? make("p", {}, verdict.note) : noteField(verdict, path),
      make("div.row.start", {}, verdict.kept ? saving(words.original, `${path}/image`, verdict.name.split("/").at(-1)) : null, sharing()),
    ),
  );
  const ways = make(
    "nav.row",
    { "aria-label": words.title(verdict.id) },
    newer ? link(`← ${words.newer}`, `#/verdicts/${newer}`, "a.button") : make("span"),
    older ? link(`${words.older} →`, `#/verdicts/${older}`, "a.button") : make("span"),
  );
  return { title: words.title(verdict.id), content: [ways, content], close: () => document.removeEventListener("keydown", onkeydown) };
}

async function neighbour(verdict, side) {
  const query = side < 0 ? `before=${verdict.id}&most=1` : `after=${verdict.id}&most=1`;
  return (await (await ask(`v1/verdicts?${query}`)).json()).verdicts[0]?.id;
}

function noteField(verdict, path) {
  const said = make("div", { role: "status" });
  const note = make("textarea", { rows: 2, maxlength: 1000, id: "note" });
  note.value = verdict.note;
  const save = acting(async () => {
    Object.assign(verdict, await send("PATCH", path, { truth: verdict.truth, note: note.value }));
    said.textContent = words.saved;
  }, said);
  return make("div.note", {}, field(words.note, note), button(words.save, save), said);
}

function sharing() {
  const said = make("span", { role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = words.shared;
      announce(words.shared);
    } catch {
      fill(said, fault(location.href)); // a page without TLS may not use the clipboard
    }
  };
  return make("span", {}, button(words.share, copy), said);
}
