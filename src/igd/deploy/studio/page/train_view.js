// Training: images in, which of them to learn from, and what the model is to promise.

import { acting, button, confirmed, field, fill, make } from "./elements.js";
import { folderChooser, intake, Sender } from "./image_intake.js";
import { picture } from "./pictures.js";
import { RoiField } from "./roi_field.js";
import { ask, send } from "./server.js";
import { percent, texts } from "./studio_texts.js";

const words = texts.train;
const RATES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3];
const SHOWN = 120; // pictures of the grid, until all are asked for

export async function trainView(about, setId) {
  if (about.role !== "train") return { title: words.title, content: [make("section.panel", {}, make("h2", {}, words.title), make("p", {}, texts.notAllowed("train")))] };
  const sender = new Sender(about, setId ? Number(setId) : null);
  const state = { set: null, excluded: new Set(), otherSizes: false, all: false };
  if (setId) state.set = await (await ask(`v1/sets/${sender.setId}`)).json();
  const preview = make("section.panel", { "aria-labelledby": "preview-name", hidden: true });
  const settings = make("section.panel", { "aria-labelledby": "settings-name", hidden: true });
  const form = settingsForm(about, state, settings);
  for (const number of about.query.get("without")?.split(",").filter(Boolean) ?? []) state.excluded.add(Number(number));
  form.recall(about.query);

  const refresh = async () => {
    if (!sender.setId) return;
    state.set = await (await ask(`v1/sets/${sender.setId}`)).json();
    draw();
  };
  const draw = () => {
    if (!state.set?.images.length) return;
    preview.hidden = settings.hidden = false;
    drawPreview(preview, state, draw);
    form.update();
  };
  settings.addEventListener("change", () => form.remember());
  const chooser = about.has_data_root
    ? folderChooser(async (folder) => {
        const made = await send("POST", "v1/sets", { folder });
        location.hash = `#/train/${made.id}`;
      })
    : null;
  draw();
  return {
    title: words.title,
    content: [
      make("section.panel", {}, make("h2", {}, words.title), make("p.soft", {}, words.intro), intake(about, sender, "good", words, refresh, "train-files"), chooser),
      preview,
      settings,
    ],
  };
}

// Where a training begins with the images and the settings of another.
export function trainingAddress({ model, spec }) {
  const asked = { model, without: (spec.excluded ?? []).join(","), rate: spec.rate, groups: spec.group_by, roi: spec.roi?.join(",") };
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  return `#/train/${spec.set}?${query}`;
}

// Why an image is not learnt from, or nothing.
function reasonOf(image, state) {
  if (image.reason) return image.reason;
  if (state.excluded.has(image.number)) return words.byYou;
  if (image.other_size && !state.otherSizes) return words.otherSize(image.width, image.height, state.set.usual_size);
  return null;
}

const keptOf = (state) => state.set.images.filter((image) => !reasonOf(image, state));

function drawPreview(panel, state, draw) {
  const { images } = state.set;
  const out = images.filter((image) => reasonOf(image, state));
  const shown = state.all ? images : images.slice(0, SHOWN);
  const focused = document.activeElement?.closest?.(".tile")?.dataset.number;
  fill(panel, 
    make("h2", { id: "preview-name" }, words.kept(images.length - out.length, out.length)),
    make("p.soft", {}, words.toggleHint),
    images.some((image) => image.other_size)
      ? make("label.check", {}, make("input", { type: "checkbox", checked: state.otherSizes, onchange: (event) => ((state.otherSizes = event.target.checked), draw()) }), words.sizes)
      : null,
    out.length
      ? make(
          "details.left-out",
          { open: out.length < 8 },
          make("summary", {}, `${words.leftOut}: ${out.length}`),
          make("ul", {}, out.map((image) => make("li", {}, make("strong", {}, image.name), `: ${reasonOf(image, state)}`))),
        )
      : null,
    make("div.grid.choice", {}, shown.map((image) => tile(image, state, draw))),
    images.length > shown.length ? button(words.showAll(images.length), () => ((state.all = true), draw())) : null,
  );
  if (focused) panel.querySelector(`.tile[data-number="${focused}"]`)?.focus();
}

const tiles = new WeakMap(); // images are fetched once, however often the grid is drawn

function tile(image, state, draw) {
  const reason = reasonOf(image, state);
  const usable = !image.reason && (!image.other_size || state.otherSizes);
  let photo = tiles.get(image);
  if (!photo) {
    photo = image.width || !image.reason ? picture(`v1/sets/${state.set.id}/images/${image.number}/thumbnail`, "") : make("span.no-picture", {}, "?");
    tiles.set(image, photo);
  }
  return make(
    "button.tile",
    {
      type: "button",
      "data-number": image.number,
      "aria-pressed": String(!reason),
      "aria-label": words.toggle(image.name) + (reason ? ` (${reason})` : ""),
      title: reason ? `${image.name}: ${reason}` : image.name,
      disabled: !usable,
      onclick: () => {
        if (!state.excluded.delete(image.number)) state.excluded.add(image.number);
        draw();
      },
    },
    photo,
    make("span.tile-name", {}, image.name.split("/").at(-1)),
  );
}

function settingsForm(about, state, panel) {
  const name = make("input", { type: "text", id: "model-name", maxlength: 64, autocomplete: "off", required: true, value: "parts" });
  const rate = make("select", { id: "train-rate" });
  const meaning = make("p.soft");
  const groups = make("select", { id: "groups" }, words.groupChoices.map(([value, text]) => make("option", { value }, text)));
  const pattern = make("input", { type: "text", id: "pattern", autocomplete: "off", maxlength: 200 });
  const patternField = field(words.pattern, pattern);
  const grouped = make("p.soft");
  const said = make("div");
  const roi = new RoiField();
  let chosen = 0.05;

  const groupBy = () => (groups.value === "own" ? pattern.value : groups.value) || null;
  const update = () => {
    if (!state.set) return;
    const kept = keptOf(state);
    roi.show(state.set.id, kept[0]);
    patternField.hidden = groups.value !== "own";
    const parts = partsOf(kept, groupBy(), grouped);
    const lowest = 1 / (Math.max(parts, 1) + 1);
    const rates = [...new Set([...RATES.filter((each) => each >= lowest), lowest > 0.05 ? lowest : 0.05])].sort((a, b) => a - b);
    const wanted = rates.includes(chosen) ? chosen : rates.find((each) => each >= Math.max(0.05, lowest)) ?? rates.at(-1);
    fill(rate, ...rates.map((each) => make("option", { value: String(each) }, percent(each))));
    rate.value = String(wanted);
    meaning.textContent = words.rateMeaning(wanted, lowest, Boolean(groupBy()));
    remember();
  };
  // All that was chosen is in the address, which leads here again after a reload.
  const remember = () => {
    if (!state.set || !panel.isConnected) return;
    const job = { model: name.value, spec: { set: state.set.id, excluded: [...state.excluded], rate: chosen, group_by: groupBy(), roi: roi.value } };
    history.replaceState(null, "", trainingAddress(job));
  };
  const recall = (query) => {
    if (query.get("model")) name.value = query.get("model");
    if (Number(query.get("rate"))) chosen = Number(query.get("rate"));
    const wanted = query.get("groups") ?? "";
    groups.value = words.groupChoices.some(([value]) => value === wanted) ? wanted : "own";
    if (groups.value === "own") pattern.value = wanted;
    const box = query.get("roi")?.split(",").map(Number) ?? [];
    if (box.length === 4 && box.every(Number.isFinite)) {
      roi.set(box);
      roi.element.open = true;
    }
  };
  rate.addEventListener("change", () => ((chosen = Number(rate.value)), update()));
  groups.addEventListener("change", update);
  pattern.addEventListener("input", update);

  const start = acting(async () => {
    const excluded = state.set.images.filter((image) => !image.reason && reasonOf(image, state)).map((image) => image.number);
    const asked = { kind: "train", model: name.value.trim(), set: state.set.id, excluded, rate: Number(rate.value), group_by: groupBy(), roi: roi.value };
    let job;
    try {
      job = await send("POST", "v1/jobs", asked);
    } catch (error) {
      if (!/already/.test(error.message) || !(await confirmed(words.replaceAsk(asked.model), words.replaceDetail, words.replace))) throw error;
      job = await send("POST", "v1/jobs", { ...asked, replace: true });
    }
    location.hash = `#/jobs/${job.id}`;
  }, said);
  const remove = acting(async () => {
    if (!(await confirmed(words.removeAsk, words.removeDetail, texts.deleteIt))) return;
    await ask(`v1/sets/${state.set.id}`, { method: "DELETE" });
    location.hash = "#/train";
  }, said);
  panel.append(
    make("h2", { id: "settings-name" }, words.settings),
    make("div.fields", {}, field(words.name, name, words.nameHint), field(words.rate, rate), field(words.groups, groups), patternField),
    meaning,
    grouped,
    roi.element,
    said,
    make("div.row", {}, make("button.main", { type: "button", id: "start-training", onclick: start }, words.start), make("button.quiet", { type: "button", onclick: remove }, words.remove)),
  );
  return { update, recall, remember };
}

// How many parts a pattern finds in the names, shown with examples; without one every image is one.
function partsOf(kept, pattern, shown) {
  shown.textContent = "";
  if (!pattern) return kept.length;
  let expression;
  try {
    expression = new RegExp(pattern, "u");
  } catch (error) {
    shown.textContent = error.message;
    return kept.length;
  }
  const found = kept.map(({ name }) => name.match(expression)).map((match) => match && (match[1] ?? match[0]));
  const missing = found.filter((part) => !part).length;
  const parts = [...new Set(found.filter(Boolean))];
  shown.textContent = missing ? words.ungrouped(missing) : words.grouped(parts.length, parts.slice(0, 4).join(", "));
  return parts.length;
}
